import { randomBytes } from 'node:crypto'
import { systemClock } from '../lib/clock.ts'
import { createLogger, type Logger } from '../lib/logger.ts'

export type Tier = 'search' | 'basic'

/**
 * How a walk ends: `full`: the page with the last event has a null `next`; `empty`: one more page,
 * empty, has it; `absent`: as `full`, without the key; `echo`: an empty page repeats the cursor it got.
 */
export type EndMode = 'full' | 'empty' | 'absent' | 'echo'

/**
 * In which order the credential feed has its records; nothing public says. `shuffled`: in one that
 * means nothing, though the same at each reading, where what is new may stand anywhere.
 */
export type CredentialOrder = 'newest' | 'ascending' | 'shuffled'

/** How the path of matching policies is spelt: as described, or as since 2026-07-07, the default. */
export type PolicyPaths = 'underscore' | 'hyphen' | 'both'

/**
 * What a search makes of `materialized_at`: heeds it as today's servers do; ignores it; refuses it (422);
 * or finds nothing as soon as it is there.
 */
export type MaterializedFilter = 'honoured' | 'ignored' | 'refused' | 'empty'

export interface SandboxOrganization {
  id: number
  /** Requests per second; default search 1, basic 4 (docs/api-notes.md, Rate limits). */
  limits?: Record<Tier, number>
  keys: SandboxKey[]
}

interface SandboxKey {
  key: string
  /** The first one is the key's default. */
  tenants: number[]
  /** What the key's user may do; default everything. */
  permissions?: readonly Permission[]
}

/** The service's names of permissions (docs/api-notes.md, Tokens); the last one is the sandbox's own. */
export const permissions = [
  'firework.global_search',
  'leaksdb.show-passwords',
  'alert_channels',
  'astp_credentials_access',
  'astp_cookies_access',
  'full_text_contents_view',
  'organization_admin',
] as const
export type Permission = (typeof permissions)[number]

export interface SandboxGroup {
  id: number
  name: string
  tenantId: number
  /** `term`: what is looked for, where that is not the name. */
  identifiers: { id: number; name: string; term?: string }[]
}

export interface SandboxOptions {
  host?: string
  /** 0: a free one; so for `smtpPort`. */
  port?: number
  smtpPort?: number
  seed?: number
  /** Mean of the Poisson process over all groups; 0: nothing arrives by itself. */
  eventsPerSecond?: number
  /** Share of the arriving events, and credentials, that were created `lateMinMs` to `lateMaxMs` before. */
  lateShare?: number
  /** Default one minute; a few seconds: what arrives is merely out of order. */
  lateMinMs?: number
  /** Default thirty minutes. */
  lateMaxMs?: number
  /** So many events, spread over the last 24 h, stand there at the start. */
  backlog?: number
  /** As `eventsPerSecond` and `backlog`, of credentials over all identifiers. */
  credentialsPerSecond?: number
  credentialBacklog?: number
  /** Default honoured. */
  materializedFilter?: MaterializedFilter
  /** Default newest. */
  credentialOrder?: CredentialOrder
  /** false: as servers before 2026-05-28, `imported_at` is heeded in `auth_domain` searches alone. */
  filtersImportedAt?: boolean
  /** A credential search for more than so many at once gets a gateway's 504; null: none does. */
  credentialSizeLimit?: number | null
  /**
   * How many global searches the month has; answers to them count down in a header whose name is
   * `prefix` and `Global-Searches-Remaining`; another, `Global-Searches-Batch-Reached`, comes only
   * when the next result costs one more. Past the end they go on at 0: nothing public says what else happens.
   * null: no header.
   */
  searchQuota?: { prefix: string; searches: number } | null
  /** true: ignored events stay on the pages, with their `ignored_at`. */
  showsIgnored?: boolean
  endMode?: EndMode
  /** Probability that a page holds fewer items than it could. */
  shortPages?: number
  /** Probability that a page is empty although more follows; never twice in a row. */
  emptyPages?: number
  organizations?: SandboxOrganization[]
  groups?: SandboxGroup[]
  tokenLifetimeMs?: number
  /** false: requests over the limit are counted, not refused. */
  enforceLimits?: boolean
  /** By how much a window may be shorter than its second before a request is over the limit. */
  limitToleranceMs?: number
  /** `Retry-After` of a 429 for rate; null: none, since none is documented (docs/api-notes.md, Rate limits). */
  retryAfterSeconds?: number | null
  /** Which limit a kind of request counts against; null: none. */
  tiers?: {
    tokens?: Tier | null
    groupSearch?: Tier
    detail?: Tier
    credentialFeed?: Tier
    credentialSearch?: Tier
  }
  /** What the detail of a type without a model is: 400 UNSUPPORTED, or an event with empty data. */
  detailWithoutModel?: 'unsupported' | 'empty'
  /** The other spelling is no route. */
  policyPaths?: PolicyPaths
  /** false: the operations on policies that the description does not have are not there. */
  undescribed?: boolean
  /** `alerts` of a group: an object where it has one and an array where several, or always the same. */
  alertsAs?: 'either' | 'object' | 'array'
  /** How long a threat-flow report is `processing`, by the time of events; default 20 s. */
  reportMs?: number
  /** Share of the reports that end in `error`; so does every one whose title contains `[error]`. */
  reportErrorShare?: number
  /**
   * Where everything is kept that a restart shall not lose; one sandbox at a time. What `backlog` and
   * `credentialBacklog` ask for stands there at the first start only. null: nothing is kept.
   */
  dataFolder?: string | null
  /** Messages per second and how many at once, per Slack URL. */
  slackLimit?: { perSecond: number; burst: number }
  /** `whsec_` and 24 to 64 bytes in base64; random unless given. */
  webhookSecret?: string
  /** false: the webhook receiver takes unsigned messages too; a wrong signature stays refused. */
  requireSignature?: boolean
  signatureToleranceMs?: number
  /** How many received messages, and how many requests, are kept. */
  keep?: number
  /** The time of events and tokens. Rates and signatures go by the system's clock. */
  now?: () => number
  logger?: Logger
}

export type SandboxSettings = Required<SandboxOptions>

const defaultOrganization: SandboxOrganization = {
  id: 7,
  keys: [{ key: 'fw_sandbox', tenants: [42, 43] }],
}

const defaultGroups: SandboxGroup[] = [
  {
    id: 1042,
    name: 'Brand',
    tenantId: 42,
    identifiers: [
      { id: 77, name: 'example.com' },
      { id: 78, name: 'Example Bank' },
      { id: 406_285_232_303, name: 'vpn.example.com' },
    ],
  },
  {
    id: 1043,
    name: 'Suppliers',
    tenantId: 42,
    identifiers: [
      { id: 91, name: 'supplier.example' },
      { id: 92, name: 'Größe & Söhne' },
    ],
  },
]

export function withDefaults(options: SandboxOptions): SandboxSettings {
  return {
    host: '127.0.0.1',
    port: 0,
    smtpPort: 0,
    seed: 1,
    eventsPerSecond: 0,
    lateShare: 0,
    lateMinMs: 60_000,
    lateMaxMs: 1_800_000,
    backlog: 0,
    credentialsPerSecond: 0,
    credentialBacklog: 0,
    materializedFilter: 'honoured',
    credentialOrder: 'newest',
    filtersImportedAt: true,
    credentialSizeLimit: null,
    searchQuota: null,
    showsIgnored: false,
    endMode: 'full',
    shortPages: 0,
    emptyPages: 0,
    organizations: [defaultOrganization],
    tokenLifetimeMs: 3_600_000,
    enforceLimits: true,
    limitToleranceMs: 100,
    retryAfterSeconds: null,
    tiers: {},
    detailWithoutModel: 'unsupported',
    policyPaths: 'hyphen',
    undescribed: true,
    alertsAs: 'either',
    reportMs: 20_000,
    reportErrorShare: 0,
    dataFolder: null,
    slackLimit: { perSecond: 1, burst: 3 },
    webhookSecret: `whsec_${randomBytes(32).toString('base64')}`,
    requireSignature: true,
    signatureToleranceMs: 300_000,
    keep: 100_000,
    now: () => systemClock.now(),
    logger: createLogger({ level: 'silent' }),
    ...options,
    groups: (options.groups ?? defaultGroups).map(copyGroup),
  }
}

/** A sandbox's groups are its own: they grow with its tenants and assets. */
function copyGroup(group: SandboxGroup): SandboxGroup {
  return { ...group, identifiers: [...group.identifiers] }
}

/** Chance that can be repeated: the same seed tells the same story (mulberry32). */
export interface Random {
  /** In [0, 1). */
  next(): number
  chance(probability: number): boolean
  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number
  pick<T>(list: readonly T[]): T
  hex(digits: number): string
  /** Exponentially distributed: the gaps of a Poisson process. */
  exponential(mean: number): number
  /** A seed from which the numbers go on as they do here. */
  seed(): number
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0

  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  function int(min: number, max: number): number {
    return min + Math.floor(next() * (max - min + 1))
  }

  return {
    next,
    int,
    chance: (probability) => next() < probability,
    pick: <T>(list: readonly T[]) => list[int(0, list.length - 1)] as T,
    hex: (digits) => Array.from({ length: digits }, () => int(0, 15).toString(16)).join(''),
    exponential: (mean) => -mean * Math.log(1 - next()),
    seed: () => state,
  }
}

/** FNV-1a, 32 bits: what varies from event to event but never between two readings of one event. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return hash >>> 0
}

import { systemClock } from '../lib/clock.ts'
import { createLogger, type Logger } from '../lib/logger.ts'

export type Tier = 'search' | 'basic'

/**
 * How a scan ends. `full`: the page with the last item has a null `next`. `empty`: one more, empty
 * page has it. `absent`: as `full`, but without the key. `echo`: an empty page repeats the cursor
 * that was sent.
 */
export type EndMode = 'full' | 'empty' | 'absent' | 'echo'

/**
 * What a search does with `materialized_at`: applies it as current servers do, ignores it, refuses
 * it (422), or finds nothing if it is given.
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
  /** The first tenant is the key's default. */
  tenants: number[]
}

export interface SandboxGroup {
  id: number
  name: string
  tenantId: number
  identifiers: { id: number; name: string }[]
}

/** Messages per second that a receiver takes, and how many at once. */
export interface ReceiverLimit {
  perSecond: number
  burst: number
}

export interface SandboxOptions {
  host?: string
  /** 0 chooses a free port; also for `smtpPort`. */
  port?: number
  smtpPort?: number
  seed?: number
  /** Events that arrive by themselves, over all groups; 0: none. */
  eventsPerSecond?: number
  /** Number of events at the start, spread over the last 24 h. */
  backlog?: number
  /** Default `honoured`. */
  materializedFilter?: MaterializedFilter
  /** A credential search for more items than this gets a gateway's 504; null: none does. */
  credentialSizeLimit?: number | null
  /**
   * Global searches per month, which the header `X-Sandbox-Global-Searches-Remaining` counts down to
   * 0. null: no header.
   */
  searchQuota?: number | null
  /** true: ignored events stay on the pages, with their `ignored_at`. */
  showsIgnored?: boolean
  endMode?: EndMode
  /** Probability that a page holds fewer items than it could. */
  shortPages?: number
  /** Probability that a page is empty although more pages follow; never twice in a row. */
  emptyPages?: number
  organizations?: SandboxOrganization[]
  groups?: SandboxGroup[]
  /** false: requests over the limit are counted but not refused. */
  enforceLimits?: boolean
  /** How long a threat-flow report is `processing`, by the clock of events; default 20 s. */
  reportMs?: number
  /** Messages per second, and burst size, per Slack URL. */
  slackLimit?: ReceiverLimit
  /** `whsec_` and 24 to 64 bytes in base64; by default the same for every sandbox. */
  webhookSecret?: string
  /** How many received messages and how many requests are kept. */
  keep?: number
  /** Clock of events and tokens. Rates and signatures use the system clock. */
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
    backlog: 0,
    materializedFilter: 'honoured',
    credentialSizeLimit: null,
    searchQuota: null,
    showsIgnored: false,
    endMode: 'full',
    shortPages: 0,
    emptyPages: 0,
    organizations: [defaultOrganization],
    enforceLimits: true,
    reportMs: 20_000,
    slackLimit: { perSecond: 1, burst: 3 },
    webhookSecret: 'whsec_cmVoZWFyc2FsLW9ubHktbm90LWEtc2VjcmV0',
    keep: 100_000,
    now: () => systemClock.now(),
    logger: createLogger({ level: 'silent' }),
    ...options,
    // a copy, since each new tenant adds a group
    groups: [...(options.groups ?? defaultGroups)],
  }
}

/** Repeatable random numbers (mulberry32): the same seed gives the same sequence. */
export interface Random {
  /** A number in [0, 1). */
  next(): number
  chance(probability: number): boolean
  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number
  pick<T>(list: readonly T[]): T
  hex(digits: number): string
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
  }
}

/**
 * FNV-1a, 32 bits, for values that vary between events but stay the same across reads of one event.
 */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  return hash >>> 0
}

/** Returns the same UUID for the same text. */
export function makeUuid(text: string): string {
  const digits = createRandom(hashText(text)).hex(30)
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(12, 15)}-a${digits.slice(15, 18)}-${digits.slice(18)}`
}

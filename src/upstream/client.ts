/**
 * The service as Tocsin uses it, for one account. Every request waits for its turn under the
 * organization's limit; every failure is a ServiceError. It keeps no cursor and repeats nothing but a
 * request whose token had run out.
 */
import { type Clock, defaultTimings, systemClock, type Timings } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { type Capabilities, createCapabilities, createOrganizationLookup } from './capabilities.ts'
import type { AccountConfig, Tier } from './config.ts'
import type { Organizations } from './organizations.ts'
import { createPacer, type RequestInfo, type Turn, type Turns } from './rate-limits.ts'
import { createOperations, type Operations } from './resources/operations.ts'
import { wireTokenTest } from './resources/page.ts'
import {
  type Call,
  createSession,
  generateToken,
  readAnswer,
  secretsOf,
  type Session,
} from './session.ts'
import {
  type AccountPause,
  createAccountState,
  createCredentials,
  createTokenCache,
} from './tokens.ts'
import { createTransport, type Transport } from './transport.ts'

interface TokenTest {
  organizationId: number | undefined
  tenantId: number | undefined
  /** Its first letter and its domain. */
  userEmail: string | undefined
  scopes: string[]
}

export interface ServiceClient extends Operations {
  readonly account: AccountConfig
  /** What this account's server and key have of what not every one has. */
  readonly capabilities: Capabilities
  /** Who the key is for the service; asks even while the account is paused. */
  testToken(options?: { signal?: AbortSignal }): Promise<TokenTest>
  /** Its id, once known. */
  organization(): number | undefined
  /** Learns the id that an earlier run kept, without a request. Throws ServiceError where the key cannot be read. */
  recallOrganization(): Promise<void>
  /** Asks for the id unless it is known, as the first request does. Throws ServiceError where the key is refused. */
  findOrganization(signal: AbortSignal): Promise<void>
  /** `waitedSeconds` since the start; `utilization`: this process' share of the tier, 0 to 1. */
  budget(tier: Tier): { waitedSeconds: number; utilization: number }
  /** For metrics and health; null while nothing is wrong. */
  pause(): Promise<AccountPause | null>
  /** How far the service's clock is ahead of ours by its last answer, ms. */
  clockSkewMs(): number | undefined
  close(): Promise<void>
}

export interface ServiceClientOptions {
  account: AccountConfig
  redis: Redis
  keys: Keys
  logger: Logger
  /** One for the process, as are its organizations. */
  turns: Turns
  organizations: Organizations
  clock?: Clock
  transport?: Transport
  /** After every request that was sent. */
  onRequest?: (info: RequestInfo) => void
  onTokenRefresh?: (result: 'renewed' | 'failed') => void
  /** How many global searches are left of the month, whenever an answer says so. */
  onQuota?: (remaining: number) => void
  random?: () => number
  tokenLifetimeMs?: number
  timings?: Timings
}

export function createServiceClient(options: ServiceClientOptions): ServiceClient {
  const { account, turns, organizations } = options
  const { clock, transport, state, tokens, pacer, session, lookup, capabilities } =
    createParts(options)

  return {
    account,
    capabilities,
    ...createOperations({ account, capabilities, parts: { session, lookup } }),
    async testToken({ signal } = {}) {
      const turn: Turn = { kind: 'command', name: 'token test', dueSinceMs: clock.now() }
      const told = await testToken(session, { turn, signal, evenIfPaused: true })
      if (told.organizationId !== undefined) await lookup.remember(told.organizationId)
      return told
    },
    organization: () => organizations.idOf(account.name),
    recallOrganization: () => lookup.recall(),
    findOrganization: (signal) => lookup.ensure(signal),
    budget: (tier) => ({
      waitedSeconds: pacer.waitedSeconds(tier),
      utilization: turns.utilization(organizations.laneOf(account.name, tier)),
    }),
    pause: () => state.current(),
    clockSkewMs: () => pacer.clockSkewMs(),
    async close() {
      tokens.close()
      await transport.close()
    },
  }
}

function createParts(options: ServiceClientOptions) {
  const { account, clock = systemClock, timings = defaultTimings } = options
  const limits = { headersMs: timings.requestTimeoutMs, totalMs: timings.requestTimeoutMs }
  const transport = options.transport ?? createTransport({ account, clock, limits })
  const credentials = createCredentials(account)
  const secrets = (): string[] => secretsOf(account, credentials())
  const pacer = createPacer({ ...options, clock, transport, secrets })
  const shared = { ...options, account: account.name, clock, credentials }
  const state = createAccountState(shared)
  const tokens = createTokenCache({
    ...shared,
    generate: (signal) => generateToken({ account, clock, credentials, pacer, state }, signal),
    assertOpen: () => state.assertOpen(),
    onRefresh: options.onTokenRefresh,
    lifetimeMs: options.tokenLifetimeMs,
  })
  const session = createSession({ account, clock, credentials, pacer, state, tokens })
  const lookup = createOrganizationLookup({
    ...shared,
    async ask(signal) {
      const turn: Turn = { kind: 'token', name: account.name, dueSinceMs: clock.now() }
      return (await testToken(session, { turn, signal })).organizationId
    },
  })
  const scope = (): string => credentials().fingerprint
  const capabilities = createCapabilities({ ...shared, scope })
  return { clock, transport, state, tokens, pacer, session, lookup, capabilities }
}

async function testToken(
  session: Session,
  asked: Pick<Call, 'turn' | 'signal' | 'evenIfPaused'>,
): Promise<TokenTest> {
  const answer = await session.call({
    method: 'GET',
    path: '/tokens/test',
    tier: 'basic',
    ...asked,
  })
  const told = readAnswer(answer, wireTokenTest)
  return {
    organizationId: told.organization_id ?? undefined,
    tenantId: told.tenant_id ?? undefined,
    userEmail: told.user_email?.replace(/^(.)[^@]*/u, '$1***'),
    scopes: told.scopes ?? [],
  }
}

/**
 * The client of the upstream API for one account. Every request waits for a slot under the
 * organization's limit, and every failure is an UpstreamError. The client holds no cursor, and
 * retries nothing but a request whose token the API refuses with a 401.
 */
import { type Clock, defaultTimings, systemClock, type Timings } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { type Capabilities, createCapabilities, createOrganizationLookup } from './capabilities.ts'
import type { AccountConfig, Tier } from './config.ts'
import type { Organizations } from './organizations.ts'
import { createPacer, type RequestInfo, type SlotRequest, type ApiSlots } from './rate-limits.ts'
import { type CallOperation, createCall } from './call.ts'
import { type Choices, createChoices } from './choices.ts'
import { wireTokenTest } from './resources/page.ts'
import {
  type Call,
  checkHealth,
  createSession,
  generateToken,
  readAnswer,
  accountSecrets,
  type Session,
} from './session.ts'
import {
  type AccountPause,
  createAccountAccess,
  createAccountKey,
  createTokenCache,
} from './tokens.ts'
import { createTransport, type Transport } from './transport.ts'

interface TokenTest {
  organizationId: number | undefined
  tenantId: number | undefined
  /** Masked: the first letter and the domain. */
  userEmail: string | undefined
  scopes: string[]
}

export interface UpstreamClient extends Choices {
  readonly account: AccountConfig
  /** Sends an operation of the table in `resources/operations.ts`. */
  call: CallOperation
  /** Which optional operations this account's server and key support. */
  readonly capabilities: Capabilities
  /** Tests the key with `GET /tokens/test`, even if the account is paused. Throws UpstreamError. */
  testToken(options?: { signal?: AbortSignal }): Promise<TokenTest>
  /** Asks the service whether it is well. Not every server tells. Throws UpstreamError. */
  checkHealth(signal: AbortSignal): Promise<void>
  /** The organization's id, once known. */
  organization(): number | undefined
  /**
   * Reads the organization's id from Redis, without a request. Throws UpstreamError if the key
   * cannot be read.
   */
  recallOrganization(): Promise<void>
  /**
   * Asks the API for the organization's id unless it is known, as the first request does. Throws
   * UpstreamError if the key is refused.
   */
  findOrganization(signal: AbortSignal): Promise<void>
  /**
   * `waitedSeconds`: seconds waited for slots since the start. `utilization`: the share of the
   * tier's rate that this process uses, 0 to 1.
   */
  budget(tier: Tier): { waitedSeconds: number; utilization: number }
  /** The account's pause, for metrics and health; null if it is not paused. */
  pause(): Promise<AccountPause | null>
  /** How far the API's clock is ahead of ours by its last answer, ms. */
  clockSkewMs(): number | undefined
  close(): Promise<void>
}

export interface UpstreamClientOptions {
  account: AccountConfig
  redis: Redis
  keys: Keys
  logger: Logger
  /** Shared by all clients of the process, as `organizations` is. */
  slots: ApiSlots
  organizations: Organizations
  clock?: Clock
  transport?: Transport
  /** Called after every request that was sent. */
  onRequest?: (info: RequestInfo) => void
  onTokenRefresh?: (result: 'renewed' | 'failed') => void
  /** Called with the month's remaining global searches whenever an answer states them. */
  onQuota?: (remaining: number) => void
  random?: () => number
  tokenLifetimeMs?: number
  timings?: Timings
}

export function createUpstreamClient(options: UpstreamClientOptions): UpstreamClient {
  const { account, slots, organizations } = options
  const { clock, transport, state, tokens, pacer, session, lookup, capabilities } =
    createParts(options)
  const parts = { session, lookup, capabilities }
  const call = createCall(parts)

  return {
    account,
    capabilities,
    call,
    ...createChoices(parts, call),
    async testToken({ signal } = {}) {
      const slot: SlotRequest = { kind: 'command', name: 'token test', dueSinceMs: clock.now() }
      const grant = await testToken(session, { slot, signal, ignoresPause: true })
      if (grant.organizationId !== undefined) await lookup.remember(grant.organizationId)
      return grant
    },
    checkHealth: (signal) => checkHealth({ account, pacer, clock }, signal),
    organization: () => organizations.idFor(account.name),
    recallOrganization: () => lookup.recall(),
    findOrganization: (signal) => lookup.ensure(signal),
    budget: (tier) => ({
      waitedSeconds: pacer.waitedSeconds(tier),
      utilization: slots.utilization(organizations.laneFor(account.name, tier)),
    }),
    pause: () => state.current(),
    clockSkewMs: () => pacer.clockSkewMs(),
    async close() {
      tokens.close()
      await transport.close()
    },
  }
}

function createParts(options: UpstreamClientOptions) {
  const { account, clock = systemClock, timings = defaultTimings } = options
  const limits = { headersMs: timings.requestTimeoutMs, totalMs: timings.requestTimeoutMs }
  const transport = options.transport ?? createTransport({ account, clock, limits })
  const accountKey = createAccountKey(account)
  const secrets = (): string[] => accountSecrets(account, accountKey())
  const pacer = createPacer({ ...options, clock, transport, secrets })
  const shared = { ...options, account: account.name, clock, accountKey }
  const state = createAccountAccess(shared)
  const tokens = createTokenCache({
    ...shared,
    generate: (signal) => generateToken({ account, clock, accountKey, pacer, state }, signal),
    onRefresh: options.onTokenRefresh,
    lifetimeMs: options.tokenLifetimeMs,
  })
  const session = createSession({ account, clock, accountKey, pacer, state, tokens })
  const lookup = createOrganizationLookup({
    ...shared,
    async ask(signal) {
      const slot: SlotRequest = { kind: 'token', name: account.name, dueSinceMs: clock.now() }
      return (await testToken(session, { slot, signal })).organizationId
    },
  })
  const scope = (): string => accountKey().fingerprint
  const capabilities = createCapabilities({ ...shared, keyFingerprint: scope })
  return { clock, transport, state, tokens, pacer, session, lookup, capabilities }
}

async function testToken(
  session: Session,
  asked: Pick<Call, 'slot' | 'signal' | 'ignoresPause'>,
): Promise<TokenTest> {
  const answer = await session.call({
    method: 'GET',
    path: '/tokens/test',
    tier: 'basic',
    ...asked,
  })
  const grant = readAnswer(answer, wireTokenTest)
  return {
    organizationId: grant.organization_id ?? undefined,
    tenantId: grant.tenant_id ?? undefined,
    userEmail: grant.user_email?.replace(/^(.)[^@]*/u, '$1***'),
    scopes: grant.scopes ?? [],
  }
}

/** Builds the client of an account from its parts. */
import { type Clock, systemClock, type Timings } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import { createCapabilities } from './access/capabilities.ts'
import type { AccountConfig } from './config.ts'
import { createOrganizationLookup, type Organizations } from './access/organizations.ts'
import { createPacer, type RequestInfo, type SlotRequest, type ApiSlots } from './rate-limits.ts'
import { createCall } from './call.ts'
import { createDocuments } from './documents.ts'
import type { TokenTest, UpstreamClient } from './client.ts'
import { wireTokenTest } from './resources/page.ts'
import {
  type Call,
  checkHealth,
  createSession,
  generateToken,
  readAnswer,
  accountSecrets,
  type Session,
} from './access/session.ts'
import { createAccountAccess, createAccountKey, createTokenCache } from './access/tokens.ts'
import type { Transport } from './transport.ts'

export interface UpstreamClientOptions {
  account: AccountConfig
  redis: Redis
  keys: Keys
  logger: Logger
  /** Shared by all clients of the process, as `organizations` is. */
  slots: ApiSlots
  organizations: Organizations
  clock?: Clock
  transport: Transport
  /** Called after every request that was sent. */
  onRequest?: (info: RequestInfo) => void
  /** Called with the month's remaining global searches whenever an answer states them. */
  onQuota?: (remaining: number) => void
  random?: () => number
  timings?: Timings
}

export function createUpstreamClient(options: UpstreamClientOptions): UpstreamClient {
  const { account, slots, organizations } = options
  const { clock, state, tokens, pacer, session, lookup, capabilities } = createParts(options)
  const parts = { session, lookup }
  const call = createCall(parts)

  return {
    account,
    capabilities,
    call,
    ...createDocuments(parts),
    async testToken({ signal } = {}) {
      const slot: SlotRequest = { kind: 'command', name: 'doctor', dueSinceMs: clock.now() }
      const grant = await testToken(session, { slot, signal, ignoresPause: true })
      if (grant.organizationId !== undefined) await lookup.remember(grant.organizationId)
      return grant
    },
    checkHealth: (signal) => checkHealth({ account, pacer, clock }, signal),
    organization: () => organizations.idFor(account.name),
    async recallOrganization() {
      await lookup.recall()
    },
    findOrganization: (signal) => lookup.ensure(signal),
    utilization: (tier) => slots.utilization(organizations.laneFor(account.name, tier)),
    pause: () => state.current(),
    clockSkewMs: () => pacer.clockSkewMs(),
    close: () => tokens.close(),
  }
}

function createParts(options: UpstreamClientOptions) {
  const { account, clock = systemClock } = options
  const accountKey = createAccountKey(account)
  const secrets = (): string[] => accountSecrets(account, accountKey())
  const pacer = createPacer({ ...options, clock, secrets })
  const shared = { ...options, account: account.name, clock, accountKey }
  const state = createAccountAccess(shared)
  const tokens = createTokenCache({
    ...shared,
    generate: (signal) => generateToken({ account, clock, accountKey, pacer, state }, signal),
  })
  const session = createSession({ account, clock, accountKey, pacer, state, tokens })
  const lookup = createOrganizationLookup({
    ...shared,
    async ask() {
      const slot: SlotRequest = { kind: 'token', name: account.name, dueSinceMs: clock.now() }
      return (await testToken(session, { slot })).organizationId
    },
  })
  const scope = (): string => accountKey().fingerprint
  const capabilities = createCapabilities({ ...shared, keyFingerprint: scope })
  return { clock, state, tokens, pacer, session, lookup, capabilities }
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
  }
}

/** The pretend service: all routes of the mock API. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { WireTokenGrant, WireTokenTest } from '../../upstream/resources/page.ts'
import type { CredentialHistory } from '../credentials/history.ts'
import { addCredentials, createCredentialRequests } from '../credentials/requests.ts'
import type { History } from '../history/history.ts'
import type { Monitoring } from '../monitoring/monitoring.ts'
import { addMonitoring } from '../monitoring/requests.ts'
import type { SandboxSettings } from '../options.ts'
import { createReports, type ReportSupply } from '../reports/reports.ts'
import { addReports } from '../reports/requests.ts'
import { type RequestLog, sendError, validationEntry } from '../server.ts'
import type { PersistentParts } from '../state/data-folder.ts'
import { findOwnEvent } from './filters.ts'
import {
  createRateWindows,
  createTokens,
  findGrant,
  guard,
  readApiKey,
  hasPermission,
  type TokenControl,
  type TokenGrant,
  type Tokens,
} from './guard.ts'
import { createSearchQuota, type SearchQuota } from './search-quota.ts'
import { toFullEvent } from './search.ts'
import { addSearches, createSearches } from './searches.ts'
import { addTenants, createTenants, type Tenants } from './tenants.ts'
import { addTriage } from './triage.ts'

export interface PretendService extends ReportSupply {
  tokens: TokenControl
  /** From now on refuses (400) every cursor issued so far. */
  expireCursors: () => void
  violations: () => Violations
  /** Global searches left this month, and those made beyond the quota. */
  quota: Pick<SearchQuota, 'remaining' | 'overdrawn'>
  /** The state that survives a restart. */
  persistent: PersistentParts
}

/** Counts of what no client should ever do. */
interface Violations {
  /** Requests that came sooner than a limit allows. */
  rate: number
  /** Cursors that came back with other parameters than they were issued for. */
  changedScans: number
}

interface ServiceParts {
  settings: SandboxSettings
  history: History
  credentialHistory: CredentialHistory
  monitoring: Monitoring
  log: RequestLog
  /** Called before any answer is sent, since its request may have changed state. */
  save: () => void
}

export function addService(root: FastifyInstance, parts: ServiceParts): PretendService {
  const { settings, history, credentialHistory, log } = parts
  const { tenants, tokens } = createAccess(settings)
  const reports = createReports({ settings, events: history.all })
  const rates = createRateWindows(settings.organizations, settings.limitToleranceMs)
  const quota = createSearchQuota(settings.searchQuota?.searches ?? null)
  const tenantOf = (id: number): number | undefined => parts.monitoring.assets.get(id)?.tenantId
  const searches = createSearches({ settings, history, quota, tenantOf })
  const credentials = createCredentialRequests({
    settings,
    history: credentialHistory,
    events: history,
    quota,
    tenantOf,
  })

  void root.register((app, _options, done) => {
    guard(app, { settings, tokens, rates, log })
    saveBeforeAnswer(app, parts.save)
    addTokenRequests(app, { tokens, log })
    addTenants(app, { settings, tenants, tokens, log })
    addReports(app, { reports, tokens, log })
    addSearches(app, { searches, tokens, log })
    addCredentials(app, { credentials, tokens, log })
    app.get('/firework/v4/events/', (request, reply) =>
      answerDetail(request, reply, { settings, history, grant: findGrant(request, tokens) }),
    )
    addMonitoring(app, { ...parts, tokens })
    app.get('/firework/v4/healthz/', () => JSON.stringify('ok'))
    addTriage(app, { ...parts, tenantOf, tokens })
    done()
  })
  return {
    tokens,
    expireCursors() {
      searches.cursors.expireAll()
      credentials.expireCursors()
    },
    violations: () => ({
      rate: rates.violations(),
      changedScans: searches.cursors.changedScans() + credentials.changedScans(),
    }),
    quota,
    addReportRequest: reports.addReportRequest,
    persistent: {
      created: { tenants, tokens, reports, monitoring: parts.monitoring },
      progress: { searches: searches.cursors, credentials: credentials.cursors, quota },
    },
  }
}

function createAccess(settings: SandboxSettings): { tenants: Tenants; tokens: Tokens } {
  const { organizations, tokenLifetimeMs: lifetimeMs, now } = settings
  const tenants = createTenants(settings)
  const listTenants = (key: string): number[] => tenants.ofKey(key).map(({ id }) => id)
  return { tenants, tokens: createTokens({ organizations, lifetimeMs, now, listTenants }) }
}

function answerDetail(
  request: FastifyRequest,
  reply: FastifyReply,
  parts: { settings: SandboxSettings; history: History; grant: TokenGrant | null },
): FastifyReply {
  const { uid } = request.query as { uid?: string }
  if (uid === undefined) {
    return reply.code(422).send({ detail: [validationEntry(['query', 'uid'], 'field required')] })
  }
  const { event, refusal } = findOwnEvent(reply, uid, parts)
  if (refusal) return refusal
  if (event.data === null && parts.settings.detailWithoutModel === 'unsupported') {
    return sendError(reply, { status: 400, code: 'UNSUPPORTED', message: 'no model for this type' })
  }
  return reply.send(toFullEvent(event, hasPermission(parts.grant, 'leaksdb.show-passwords')))
}

function addTokenRequests(
  app: FastifyInstance,
  { tokens, log }: { tokens: Tokens; log: RequestLog },
): void {
  app.post('/tokens/generate', (request, reply) => {
    const body = log.entryFor(request).body as { tenant_id?: number } | undefined
    return answerGrant(
      reply,
      tokens.issue(readApiKey(request.headers.authorization ?? ''), body?.tenant_id),
    )
  })
  app.get('/tokens/test', (request) => toTokenTest(findGrant(request, tokens)))
}

function answerGrant(
  reply: FastifyReply,
  grant: TokenGrant | 'forbidden' | 'unknown',
): FastifyReply {
  if (grant === 'unknown') return sendError(reply, { status: 401, message: 'bad API key' })
  if (grant === 'forbidden') return sendError(reply, { status: 403, message: 'not your tenant' })
  // The expiry of a refresh cookie, not of the token, as in the real answer: a trap for clients.
  const refreshTokenExp = Math.floor(grant.expiresAtMs / 1000) + 2_592_000
  const body: WireTokenGrant = { token: grant.token, refresh_token_exp: refreshTokenExp }
  return reply.send(body)
}

function toTokenTest(grant: TokenGrant | null): WireTokenTest {
  return {
    tenant_id: grant?.tenantId ?? null,
    api_key_id: grant?.apiKeyId ?? null,
    organization_id: grant?.organizationId ?? null,
    user_id: grant?.userId ?? null,
    user_email: grant?.userEmail ?? null,
    scopes: ['authenticated', 'apikey', 'firework', ...(grant?.permissions ?? [])],
  }
}

/**
 * Saves what a request changed before its answer is sent. Reads count too: reading a report may
 * write it.
 */
function saveBeforeAnswer(app: FastifyInstance, save: () => void): void {
  app.addHook('onSend', async (_request, _reply, payload) => {
    save()
    return payload
  })
}

/** The pretend service: tokens, the search of an identifier group, details of events, credentials. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { addCredentials, createCredentialRequests } from '../credentials/credential-requests.ts'
import type { CredentialHistory } from '../credentials/credential-history.ts'
import type { History } from '../history/history.ts'
import { addMonitoring } from '../monitoring/monitoring-requests.ts'
import type { Monitoring } from '../monitoring/monitoring.ts'
import type { SandboxSettings } from '../options.ts'
import type { RequestLog } from '../request-log.ts'
import { sendError, validationEntry } from '../error-bodies.ts'
import { addReports } from '../reports/report-requests.ts'
import { createReports, type ReportSupply } from '../reports/reports.ts'
import { addSearches, createSearches } from '../search/searches.ts'
import type { KeptParts } from '../state/data-folder.ts'
import { addTenants } from '../tenants/tenant-requests.ts'
import { createTenants, type Tenants } from '../tenants/tenants.ts'
import { reachEvent } from './event-access.ts'
import { fullEventOf } from './full-event.ts'
import { grantOf, guard } from './gate.ts'
import { mayDo } from './permissions.ts'
import { createRateWindows } from './rate-window.ts'
import { saveChanges } from './save-changes.ts'
import { createSearchQuota, type SearchQuota } from './search-quota.ts'
import { addTokenRequests } from './token-requests.ts'
import { createTokens, type TokenControl, type TokenGrant, type Tokens } from './tokens.ts'

export interface PretendService extends ReportSupply {
  tokens: TokenControl
  /** Every cursor handed out so far is refused (400) from now on. */
  expireCursors: () => void
  violations: () => Violations
  /** Of the month's global searches: how many are left, and how many were made beyond. */
  quota: Pick<SearchQuota, 'remaining' | 'overdrawn'>
  /** What of it a restart shall not lose. */
  kept: KeptParts
}

/** What no client should ever do. */
export interface Violations {
  /** Requests that came sooner than a limit allows. */
  rate: number
  /** Cursors that came back with other parameters than they were handed out for. */
  changedWalks: number
}

interface Parts {
  settings: SandboxSettings
  history: History
  credentialHistory: CredentialHistory
  monitoring: Monitoring
  log: RequestLog
  /** Called before the answer to a request leaves that may have changed something. */
  save: () => void
}

export function addService(root: FastifyInstance, parts: Parts): PretendService {
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
    quota,
    tenantOf,
  })

  void root.register((app, _options, done) => {
    guard(app, { settings, tokens, rates, log })
    saveChanges(app, parts.save)
    addTokenRequests(app, { tokens, log })
    addTenants(app, { settings, tenants, tokens, log })
    addReports(app, { reports, tokens, log })
    addSearches(app, { searches, tokens, log })
    addCredentials(app, { credentials, tokens, log })
    app.get('/firework/v4/events/', (request, reply) =>
      answerDetail(request, reply, { settings, history, grant: grantOf(request, tokens) }),
    )
    addMonitoring(app, { ...parts, tokens })
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
      changedWalks: searches.cursors.changedWalks() + credentials.changedWalks(),
    }),
    quota,
    addReportRequest: reports.addReportRequest,
    kept: {
      made: { tenants, tokens, reports, monitoring: parts.monitoring },
      walks: { searches: searches.cursors, credentials: credentials.cursors, quota },
    },
  }
}

function createAccess(settings: SandboxSettings): { tenants: Tenants; tokens: Tokens } {
  const { organizations, tokenLifetimeMs: lifetimeMs, now } = settings
  const tenants = createTenants(settings)
  const tenantsOf = (key: string): number[] => tenants.ofKey(key).map(({ id }) => id)
  return { tenants, tokens: createTokens({ organizations, lifetimeMs, now, tenantsOf }) }
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
  const { event, refusal } = reachEvent(reply, uid, parts)
  if (refusal) return refusal
  if (event.data === null && parts.settings.detailWithoutModel === 'unsupported') {
    return sendError(reply, { status: 400, code: 'UNSUPPORTED', message: 'no model for this type' })
  }
  return reply.send(fullEventOf(event, mayDo(parts.grant, 'leaksdb.show-passwords')))
}

/** The pretend service: tokens, the search of an identifier group, details of events, credentials. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { WireTokenGrant, WireTokenTest } from '../../service/wire.ts'
import { createCredentialRequests } from '../credentials/credential-requests.ts'
import type { CredentialHistory } from '../credentials/credential-history.ts'
import { createSearchQuota, type SearchQuota } from '../credentials/search-quota.ts'
import type { History } from '../history/history.ts'
import type { SandboxSettings } from '../options.ts'
import type { RequestLog } from '../request-log.ts'
import { sendError, validationEntry } from '../error-bodies.ts'
import { fullEventOf } from './full-event.ts'
import { credentialSearchPath, grantOf, guard } from './gate.ts'
import { createRateWindows } from './rate-window.ts'
import { createSearch } from './search.ts'
import { createTokens, type TokenControl, type TokenGrant } from './tokens.ts'

export interface PretendService {
  tokens: TokenControl
  /** Every cursor handed out so far is refused (400) from now on. */
  expireCursors: () => void
  violations: () => Violations
  /** Of the month's global searches: how many are left, and how many were made beyond. */
  quota: Pick<SearchQuota, 'remaining' | 'overdrawn'>
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
  log: RequestLog
}

export function addService(root: FastifyInstance, parts: Parts): PretendService {
  const { settings, history, credentialHistory, log } = parts
  const tokens = createTokens({
    organizations: settings.organizations,
    lifetimeMs: settings.tokenLifetimeMs,
    now: settings.now,
  })
  const rates = createRateWindows(settings.organizations, settings.limitToleranceMs)
  const search = createSearch(settings, history)
  const quota = createSearchQuota(settings.searchQuota?.searches ?? null)
  const credentials = createCredentialRequests({ settings, history: credentialHistory, quota })

  void root.register((app, _options, done) => {
    guard(app, { settings, tokens, rates, log })
    app.post('/tokens/generate', (request, reply) => {
      const body = log.entryOf(request).body as { tenant_id?: number } | undefined
      return answerGrant(reply, tokens.issue(request.headers.authorization ?? '', body?.tenant_id))
    })
    app.get('/tokens/test', (request) => identityOf(grantOf(request, tokens)))
    app.post('/firework/v4/events/identifier_groups/:id/_search', (request, reply) =>
      search.answer(request, reply, {
        grant: grantOf(request, tokens),
        body: log.entryOf(request).body,
      }),
    )
    app.get('/firework/v3/identifiers/:id/feed/credentials', (request, reply) =>
      credentials.answerFeed(request, reply, grantOf(request, tokens)),
    )
    app.post(credentialSearchPath, (request, reply) =>
      credentials.answerSearch(reply, log.entryOf(request).body),
    )
    app.get('/firework/v4/events/', (request, reply) =>
      answerDetail(request, reply, { settings, history, grant: grantOf(request, tokens) }),
    )
    done()
  })
  return {
    tokens,
    expireCursors() {
      search.expireCursors()
      credentials.expireCursors()
    },
    violations: () => ({
      rate: rates.violations(),
      changedWalks: search.changedWalks() + credentials.changedWalks(),
    }),
    quota,
  }
}

function answerGrant(
  reply: FastifyReply,
  grant: TokenGrant | 'forbidden' | 'unknown',
): FastifyReply {
  if (grant === 'unknown') return sendError(reply, { status: 401, message: 'bad API key' })
  if (grant === 'forbidden') return sendError(reply, { status: 403, message: 'not your tenant' })
  // About a refresh cookie, not about the token, as in the real answer: a trap for clients.
  const refreshTokenExp = Math.floor(grant.expiresAtMs / 1000) + 2_592_000
  const body: WireTokenGrant = { token: grant.token, refresh_token_exp: refreshTokenExp }
  return reply.send(body)
}

function identityOf(grant: TokenGrant | null): WireTokenTest {
  return {
    tenant_id: grant?.tenantId ?? null,
    api_key_id: 1,
    organization_id: grant?.organizationId ?? null,
    user_id: 1,
    user_email: 'sandbox@example.com',
    scopes: ['authenticated', 'apikey', 'firework'],
  }
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
  const event = parts.history.get(uid)
  if (!event) return sendError(reply, { status: 404, message: 'no such event' })
  const tenants = parts.settings.groups
    .filter(({ id }) => event.groupIds.includes(id))
    .map(({ tenantId }) => tenantId)
  if (!parts.grant || !tenants.includes(parts.grant.tenantId)) {
    return sendError(reply, { status: 403, message: 'an event of another tenant' })
  }
  if (event.data === null && parts.settings.detailWithoutModel === 'unsupported') {
    return sendError(reply, { status: 400, code: 'UNSUPPORTED', message: 'no model for this type' })
  }
  return reply.send(fullEventOf(event))
}

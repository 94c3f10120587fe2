/** The requests for credentials over HTTP: an identifier's feed, the tenant's, and the searches. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { chargeSearch } from '../api/charge-search.ts'
import { refuseIdentifier } from '../api/event-access.ts'
import { astpSearchPath, credentialSearchPath, grantOf } from '../api/gate.ts'
import { mayDo } from '../api/permissions.ts'
import type { SearchQuota } from '../api/search-quota.ts'
import type { TokenGrant, Tokens } from '../api/tokens.ts'
import { wirePage } from '../api/wire-page.ts'
import { sendError, validationEntry } from '../error-bodies.ts'
import type { SandboxSettings } from '../options.ts'
import type { RequestLog } from '../request-log.ts'
import type { CredentialHistory } from './credential-history.ts'
import { feedItemOf, searchItemOfCredential, tenantItemOf } from './credential-item.ts'
import { inFeedOrder, inImportOrder, inSearchOrder } from './credential-order.ts'
import {
  credentialFeedQuery,
  credentialMatcher,
  credentialSearchBody,
  tenantCredentialsQuery,
  type CredentialSearchBody,
} from './credential-search-body.ts'
import { createCredentialWalks, type CredentialWalks } from './credential-walks.ts'
import type { SandboxCredential } from './sandbox-credential.ts'

export interface CredentialRequests extends Pick<
  CredentialWalks,
  'expireCursors' | 'changedWalks' | 'cursors'
> {
  answerFeed(request: FastifyRequest, reply: FastifyReply, grant: TokenGrant | null): FastifyReply
  answerTenant(request: FastifyRequest, reply: FastifyReply, grant: TokenGrant | null): FastifyReply
  /** `isCharged`: it costs quota. */
  answerSearch(
    reply: FastifyReply,
    asked: { body: unknown; grant: TokenGrant | null; isCharged: boolean },
  ): FastifyReply
}

interface Parts {
  settings: SandboxSettings
  history: CredentialHistory
  quota: SearchQuota
  walks: CredentialWalks
  /** Whose identifier it is; undefined: there is none. */
  tenantOf: (identifierId: number) => number | undefined
}

export function createCredentialRequests(given: Omit<Parts, 'walks'>): CredentialRequests {
  const walks = createCredentialWalks(given.settings)
  const parts = { ...given, walks }
  return {
    ...walks,
    answerFeed(request, reply, grant) {
      const { id } = request.params as { id: string }
      const asker = { id, grant, tenantOf: given.tenantOf, shape: 'message' } as const
      const refused = refuseIdentifier(reply, asker)
      if (refused) return refused
      const asked = credentialFeedQuery.safeParse(request.query)
      if (!asked.success) return refuseShape(reply, 'query', asked.error)
      return sendFeedPage(reply, { id, ...asked.data, show: shownTo(grant) }, parts)
    },
    answerTenant(request, reply, grant) {
      const asked = tenantCredentialsQuery.safeParse(request.query)
      if (!asked.success) return refuseShape(reply, 'query', asked.error)
      const isOwn = ({ identifierIds }: SandboxCredential): boolean =>
        identifierIds.some((id) => given.tenantOf(id) === grant?.tenantId)
      return sendTenantPage(reply, { ...asked.data, show: shownTo(grant), isOwn }, parts)
    },
    answerSearch(reply, { body, grant, isCharged }) {
      const asked = credentialSearchBody.safeParse(body ?? {})
      if (!asked.success) return refuseShape(reply, 'body', asked.error)
      return sendSearchPage(reply, { ...asked.data, show: shownTo(grant), isCharged }, parts)
    },
  }
}

export function addCredentials(
  app: FastifyInstance,
  {
    credentials,
    tokens,
    log,
  }: { credentials: CredentialRequests; tokens: Tokens; log: RequestLog },
): void {
  app.get('/firework/v3/identifiers/:id/feed/credentials', (request, reply) =>
    credentials.answerFeed(request, reply, grantOf(request, tokens)),
  )
  for (const method of ['GET', 'POST'] as const) {
    app.route({
      method,
      url: '/firework/v2/me/feed/credentials',
      handler: (request, reply) =>
        credentials.answerTenant(request, reply, grantOf(request, tokens)),
    })
  }
  for (const path of [credentialSearchPath, astpSearchPath] as const) {
    app.post(path, (request, reply) =>
      credentials.answerSearch(reply, {
        body: log.entryOf(request).body,
        grant: grantOf(request, tokens),
        isCharged: path === credentialSearchPath,
      }),
    )
  }
}

function sendFeedPage(
  reply: FastifyReply,
  { id, size, show, ...asked }: z.infer<typeof credentialFeedQuery> & Shown & { id: string },
  { settings, history, walks }: Parts,
): FastifyReply {
  const { from = null } = asked
  const page = walks.read({
    walk: ['feed', id, size],
    ...inFeedOrder(history.all(), settings),
    size,
    from,
    matches: ({ identifierIds }) => identifierIds.includes(Number(id)),
  })
  if (!page) return refuseCursor(reply)
  return reply.send(
    wirePage(
      page.shown.map((one) => feedItemOf(show(one))),
      page.next,
      from,
    ),
  )
}

function sendTenantPage(
  reply: FastifyReply,
  asked: z.infer<typeof tenantCredentialsQuery> &
    Shown & { isOwn: (credential: SandboxCredential) => boolean },
  { history, walks }: Parts,
): FastifyReply {
  const { size, order_type: order, show, isOwn } = asked
  const from = asked.from ?? null
  const page = walks.read({
    walk: ['tenant', size, order],
    entries: inImportOrder(history.all()),
    order,
    size,
    from,
    matches: isOwn,
  })
  if (!page) return refuseCursor(reply)
  const items = page.shown.map((one) => tenantItemOf(show(one)))
  return reply.send(wirePage(items, page.next, from))
}

function sendSearchPage(
  reply: FastifyReply,
  { show, isCharged, ...body }: CredentialSearchBody & Shown & { isCharged: boolean },
  { settings, history, quota, walks }: Parts,
): FastifyReply {
  const { from = null, ...walk } = body
  const { credentialSizeLimit, filtersImportedAt } = settings
  if (credentialSizeLimit !== null && body.size > credentialSizeLimit) {
    return sendError(reply, { status: 504 })
  }
  const page = walks.read({
    walk: ['search', walk],
    entries: inSearchOrder(history.all()),
    order: body.order,
    size: body.size,
    from,
    matches: credentialMatcher(body, filtersImportedAt),
  })
  if (!page) return refuseCursor(reply)
  const shown = page.shown.map(({ id }) => id)
  if (isCharged) {
    chargeSearch(reply, { kind: 'credentials', query: body.query, shown }, { settings, quota })
  }
  const items = page.shown.map((one) => searchItemOfCredential(show(one), body.include))
  return reply.send(wirePage(items, page.next, from))
}

interface Shown {
  /** What of a credential the caller may see. */
  show: (credential: SandboxCredential) => SandboxCredential
}

function shownTo(grant: TokenGrant | null): Shown['show'] {
  const maySee = mayDo(grant, 'leaksdb.show-passwords')
  return (credential) => (maySee ? credential : { ...credential, hash: null })
}

function refuseShape(reply: FastifyReply, part: string, error: z.ZodError): FastifyReply {
  const detail = error.issues.map(({ path, message }) => {
    const place = path.map((key) => (typeof key === 'number' ? key : String(key)))
    return validationEntry([part, ...place], message)
  })
  return reply.code(422).send({ detail })
}

function refuseCursor(reply: FastifyReply): FastifyReply {
  return sendError(reply, { status: 400, code: 'INVALID_CURSOR', message: 'bad cursor' })
}

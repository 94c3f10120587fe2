/** The two requests for credentials over HTTP: an identifier's feed (v3) and the global search (v4). */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { TokenGrant } from '../api/tokens.ts'
import { wirePage } from '../api/wire-page.ts'
import { sendError, validationEntry } from '../error-bodies.ts'
import type { SandboxSettings } from '../options.ts'
import type { CredentialHistory } from './credential-history.ts'
import { feedItemOf, searchItemOfCredential } from './credential-item.ts'
import { inFeedOrder, inImportOrder } from './credential-order.ts'
import {
  credentialFeedQuery,
  credentialMatcher,
  credentialSearchBody,
  type CredentialSearchBody,
} from './credential-search-body.ts'
import { createCredentialWalks, type CredentialWalks } from './credential-walks.ts'
import type { SearchQuota } from './search-quota.ts'

export interface CredentialRequests extends Pick<
  CredentialWalks,
  'expireCursors' | 'changedWalks'
> {
  answerFeed(request: FastifyRequest, reply: FastifyReply, grant: TokenGrant | null): FastifyReply
  answerSearch(reply: FastifyReply, body: unknown): FastifyReply
}

interface Parts {
  settings: SandboxSettings
  history: CredentialHistory
  quota: SearchQuota
  walks: CredentialWalks
}

export function createCredentialRequests(
  given: Pick<Parts, 'settings' | 'history' | 'quota'>,
): CredentialRequests {
  const walks = createCredentialWalks(given.settings)
  const parts = { ...given, walks }
  return {
    ...walks,
    answerFeed(request, reply, grant) {
      const { id } = request.params as { id: string }
      const refused = refuseIdentifier(reply, { id, grant, settings: given.settings })
      if (refused) return refused
      const asked = credentialFeedQuery.safeParse(request.query)
      if (!asked.success) return refuseShape(reply, 'query', asked.error)
      return sendFeedPage(reply, { id, ...asked.data }, parts)
    },
    answerSearch(reply, body) {
      const asked = credentialSearchBody.safeParse(body ?? {})
      if (!asked.success) return refuseShape(reply, 'body', asked.error)
      return sendSearchPage(reply, asked.data, parts)
    },
  }
}

function sendFeedPage(
  reply: FastifyReply,
  { id, size, ...asked }: z.infer<typeof credentialFeedQuery> & { id: string },
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
  return reply.send(wirePage(page.shown.map(feedItemOf), page.next, from))
}

function sendSearchPage(
  reply: FastifyReply,
  body: CredentialSearchBody,
  { settings, history, quota, walks }: Parts,
): FastifyReply {
  const { from = null, ...walk } = body
  const { credentialSizeLimit, searchQuota, filtersImportedAt } = settings
  if (credentialSizeLimit !== null && body.size > credentialSizeLimit) {
    return sendError(reply, { status: 504 })
  }
  const page = walks.read({
    walk: ['search', walk],
    entries: inImportOrder(history.all()),
    order: body.order,
    size: body.size,
    from,
    matches: credentialMatcher(body, filtersImportedAt),
  })
  if (!page) return refuseCursor(reply)
  if (searchQuota) {
    const ids = page.shown.map(({ id }) => id)
    const remaining = quota.pay(JSON.stringify(body.query), ids, settings.now())
    void reply.header(`${searchQuota.prefix}Global-Searches-Remaining`, String(remaining))
  }
  const items = page.shown.map((one) => searchItemOfCredential(one, body.include))
  return reply.send(wirePage(items, page.next, from))
}

function refuseIdentifier(
  reply: FastifyReply,
  { id, grant, settings }: { id: string; grant: TokenGrant | null; settings: SandboxSettings },
): FastifyReply | null {
  if (!/^\d+$/.test(id)) {
    const detail = [validationEntry(['path', 'identifier_id'], 'not an integer', id)]
    return reply.code(422).send({ detail })
  }
  const tenants = settings.groups
    .filter(({ identifiers }) => identifiers.some((known) => String(known.id) === id))
    .map(({ tenantId }) => tenantId)
  if (tenants.length === 0) {
    return sendError(reply, { status: 404, message: 'no such identifier', shape: 'message' })
  }
  if (grant && tenants.includes(grant.tenantId)) return null
  const message = 'an identifier of another tenant'
  return sendError(reply, { status: 403, message, shape: 'message' })
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

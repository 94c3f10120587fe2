/** The two requests for credentials over HTTP: an identifier's feed (v3) and the global search (v4). */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { chargeSearch } from '../api/charge-search.ts'
import { mayDo } from '../api/permissions.ts'
import type { SearchQuota } from '../api/search-quota.ts'
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
import type { SandboxCredential } from './sandbox-credential.ts'

export interface CredentialRequests extends Pick<
  CredentialWalks,
  'expireCursors' | 'changedWalks' | 'cursors'
> {
  answerFeed(request: FastifyRequest, reply: FastifyReply, grant: TokenGrant | null): FastifyReply
  answerSearch(reply: FastifyReply, body: unknown, grant: TokenGrant | null): FastifyReply
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
      const refused = refuseIdentifier(reply, { id, grant, tenantOf: given.tenantOf })
      if (refused) return refused
      const asked = credentialFeedQuery.safeParse(request.query)
      if (!asked.success) return refuseShape(reply, 'query', asked.error)
      return sendFeedPage(reply, { id, ...asked.data, show: shownTo(grant) }, parts)
    },
    answerSearch(reply, body, grant) {
      const asked = credentialSearchBody.safeParse(body ?? {})
      if (!asked.success) return refuseShape(reply, 'body', asked.error)
      return sendSearchPage(reply, { ...asked.data, show: shownTo(grant) }, parts)
    },
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

function sendSearchPage(
  reply: FastifyReply,
  { show, ...body }: CredentialSearchBody & Shown,
  { settings, history, quota, walks }: Parts,
): FastifyReply {
  const { from = null, ...walk } = body
  const { credentialSizeLimit, filtersImportedAt } = settings
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
  const shown = page.shown.map(({ id }) => id)
  chargeSearch(reply, { kind: 'credentials', query: body.query, shown }, { settings, quota })
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

function refuseIdentifier(
  reply: FastifyReply,
  { id, grant, tenantOf }: Pick<Parts, 'tenantOf'> & { id: string; grant: TokenGrant | null },
): FastifyReply | null {
  if (!/^\d+$/.test(id)) {
    const detail = [validationEntry(['path', 'identifier_id'], 'not an integer', id)]
    return reply.code(422).send({ detail })
  }
  const tenant = tenantOf(Number(id))
  if (tenant === undefined) {
    return sendError(reply, { status: 404, message: 'no such identifier', shape: 'message' })
  }
  if (grant?.tenantId === tenant) return null
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

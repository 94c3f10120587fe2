/** Credentials over HTTP: the feed of an identifier, the feed of the tenant, and the searches. */
import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { credentialIncludes, orders } from '../../upstream/resources/enumerations.ts'
import {
  createCursorWatch,
  createPageHabits,
  decodeCursor,
  encodeCursor,
  type NextCursor,
  takePage,
  wirePage,
} from '../api/cursor.ts'
import { parseInstant, refuseIdentifier } from '../api/filters.ts'
import {
  astpSearchPath,
  cookieSearchPath,
  credentialSearchPath,
  findGrant,
  hasPermission,
  type TokenGrant,
  type Tokens,
} from '../api/guard.ts'
import { chargeSearch, type SearchQuota } from '../api/search-quota.ts'
import { formatOffsetTime } from '../history/draft.ts'
import {
  comparePositions,
  type History,
  type Placed,
  type Position,
  toPosition,
} from '../history/history.ts'
import { hashText, type SandboxSettings } from '../options.ts'
import { type RequestLog, sendError, validationEntry } from '../server.ts'
import type { Persistent } from '../state/data-folder.ts'
import { cookieMatcher, type CookieSearchBody, cookieSearchBody, listCookies } from './cookies.ts'
import type { CredentialHistory, SandboxCredential } from './history.ts'

interface CredentialRequests extends Pick<
  CredentialPages,
  'expireCursors' | 'changedScans' | 'cursors'
> {
  answerFeed(request: FastifyRequest, reply: FastifyReply, grant: TokenGrant | null): FastifyReply
  answerTenant(request: FastifyRequest, reply: FastifyReply, grant: TokenGrant | null): FastifyReply
  answerUrls(reply: FastifyReply, body: unknown): FastifyReply
  answerCookies(reply: FastifyReply, body: unknown): FastifyReply
  /** `isCharged`: the search costs quota. */
  answerSearch(
    reply: FastifyReply,
    asked: { body: unknown; grant: TokenGrant | null; isCharged: boolean },
  ): FastifyReply
}

interface CredentialParts {
  settings: SandboxSettings
  history: CredentialHistory
  /** Whose stealer logs hold the cookies. */
  events: History
  quota: SearchQuota
  pages: CredentialPages
  /** Returns the tenant of an identifier; undefined if the identifier does not exist. */
  tenantOf: (identifierId: number) => number | undefined
}

export function createCredentialRequests(
  given: Omit<CredentialParts, 'pages'>,
): CredentialRequests {
  const pages = createCredentialPages(given.settings)
  const parts = { ...given, pages }
  return {
    ...pages,
    answerFeed(request, reply, grant) {
      const { id } = request.params as { id: string }
      const asker = { id, grant, tenantOf: given.tenantOf, shape: 'message' } as const
      const refused = refuseIdentifier(reply, asker)
      if (refused) return refused
      const parsed = credentialFeedQuery.safeParse(request.query)
      if (!parsed.success) return refuseShape(reply, 'query', parsed.error)
      return sendFeedPage(reply, { id, ...parsed.data, show: viewFor(grant) }, parts)
    },
    answerTenant(request, reply, grant) {
      const parsed = tenantCredentialsQuery.safeParse(request.query)
      if (!parsed.success) return refuseShape(reply, 'query', parsed.error)
      const isOwn = ({ identifierIds }: SandboxCredential): boolean =>
        identifierIds.some((id) => given.tenantOf(id) === grant?.tenantId)
      return sendTenantPage(reply, { ...parsed.data, show: viewFor(grant), isOwn }, parts)
    },
    answerUrls(reply, body) {
      const parsed = credentialUrlsBody.safeParse(body ?? {})
      if (!parsed.success) return refuseShape(reply, 'body', parsed.error)
      return sendUrls(reply, parsed.data, parts)
    },
    answerCookies(reply, body) {
      const parsed = cookieSearchBody.safeParse(body ?? {})
      if (!parsed.success) return refuseShape(reply, 'body', parsed.error)
      return sendCookies(reply, parsed.data, parts)
    },
    answerSearch(reply, { body, grant, isCharged }) {
      const parsed = credentialSearchBody.safeParse(body ?? {})
      if (!parsed.success) return refuseShape(reply, 'body', parsed.error)
      return sendSearchPage(reply, { ...parsed.data, show: viewFor(grant), isCharged }, parts)
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
    credentials.answerFeed(request, reply, findGrant(request, tokens)),
  )
  for (const method of ['GET', 'POST'] as const) {
    app.route({
      method,
      url: '/firework/v2/me/feed/credentials',
      handler: (request, reply) =>
        credentials.answerTenant(request, reply, findGrant(request, tokens)),
    })
  }
  app.post('/astp/urls/by_credential_hash', (request, reply) =>
    credentials.answerUrls(reply, log.entryFor(request).body),
  )
  app.post(cookieSearchPath, (request, reply) =>
    credentials.answerCookies(reply, log.entryFor(request).body),
  )
  for (const path of [credentialSearchPath, astpSearchPath] as const) {
    app.post(path, (request, reply) =>
      credentials.answerSearch(reply, {
        body: log.entryFor(request).body,
        grant: findGrant(request, tokens),
        isCharged: path === credentialSearchPath,
      }),
    )
  }
}

function sendFeedPage(
  reply: FastifyReply,
  {
    id,
    size,
    show,
    ...parsed
  }: z.infer<typeof credentialFeedQuery> & CredentialViewer & { id: string },
  { settings, history, pages }: CredentialParts,
): FastifyReply {
  const { from = null } = parsed
  const page = pages.read({
    scanQuery: ['feed', id, size],
    ...sortForFeed(history.all(), settings),
    size,
    from,
    matches: ({ credential }) => credential.identifierIds.includes(Number(id)),
  })
  if (!page) return refuseCursor(reply)
  return reply.send(
    wirePage(
      page.shown.map(({ credential }) => toFeedItem(show(credential))),
      page.next,
      from,
    ),
  )
}

function sendTenantPage(
  reply: FastifyReply,
  parsed: z.infer<typeof tenantCredentialsQuery> &
    CredentialViewer & { isOwn: (credential: SandboxCredential) => boolean },
  { history, pages }: CredentialParts,
): FastifyReply {
  const { size, order_type: order, show, isOwn } = parsed
  const from = parsed.from ?? null
  const page = pages.read({
    scanQuery: ['tenant', size, order],
    entries: sortByImport(history.all()),
    order,
    size,
    from,
    matches: ({ credential }) => isOwn(credential),
  })
  if (!page) return refuseCursor(reply)
  const items = page.shown.map(({ credential }) => toTenantCredential(show(credential)))
  return reply.send(wirePage(items, page.next, from))
}

function sendSearchPage(
  reply: FastifyReply,
  { show, isCharged, ...body }: CredentialSearchBody & CredentialViewer & { isCharged: boolean },
  { settings, history, quota, pages }: CredentialParts,
): FastifyReply {
  const { from = null, ...scanQuery } = body
  const { credentialSizeLimit, filtersImportedAt } = settings
  if (credentialSizeLimit !== null && body.size > credentialSizeLimit) {
    return sendError(reply, { status: 504 })
  }
  const matches = credentialMatcher(body, filtersImportedAt)
  const page = pages.read({
    scanQuery: ['search', scanQuery],
    entries: sortForSearch(history.all()),
    order: body.order,
    size: body.size,
    from,
    matches: ({ credential }) => matches(credential),
  })
  if (!page) return refuseCursor(reply)
  const shown = page.shown.map(({ credential }) => credential.id)
  if (isCharged) {
    chargeSearch(reply, { kind: 'credentials', query: body.query, shown }, { settings, quota })
  }
  const items = page.shown.map(({ credential }) =>
    toSearchCredential(show(credential), body.include),
  )
  return reply.send(wirePage(items, page.next, from))
}

/** Whatever the tenant: the search that shows the hash is global, too. A cursor is the next place. */
function sendUrls(
  reply: FastifyReply,
  { credential_hash: hash, size, from }: z.infer<typeof credentialUrlsBody>,
  { history }: CredentialParts,
): FastifyReply {
  const found = history.all().filter((one) => hashPair(one) === hash)
  const hosts = [...new Set(found.flatMap(({ authDomains }) => authDomains))].toSorted()
  const start = from ? Number(from) : 0
  if (!Number.isInteger(start)) return refuseCursor(reply)
  const items = hosts
    .slice(start, start + size)
    .map((host) => ({ url: `https://${host}/login`, domain: host, credential_hash: hash }))
  return reply.send({ items, next: start + size < hosts.length ? String(start + size) : null })
}

function sendCookies(
  reply: FastifyReply,
  body: CookieSearchBody,
  { events, pages }: CredentialParts,
): FastifyReply {
  const { from = null, ...scanQuery } = body
  const page = pages.read({
    scanQuery: ['cookies', scanQuery],
    entries: listCookies(events),
    order: body.order,
    size: body.size,
    from,
    matches: cookieMatcher(body),
  })
  if (!page) return refuseCursor(reply)
  return reply.send(
    wirePage(
      page.shown.map(({ item }) => item),
      page.next,
      from,
    ),
  )
}

interface CredentialViewer {
  /** Returns a credential as the caller may see it. */
  show: (credential: SandboxCredential) => SandboxCredential
}

function viewFor(grant: TokenGrant | null): CredentialViewer['show'] {
  const maySee = hasPermission(grant, 'leaksdb.show-passwords')
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

/**
 * Maximum number of auth domains, and of URLs, that a credential lists (docs/api-notes.md,
 * Credentials).
 */
const maxIncluded = 100

export function toFeedItem(credential: SandboxCredential): unknown {
  if ('raw' in credential) return credential.raw
  const { source, knownPasswordId, remediatedAtMs, ignoredAtMs } = credential
  return {
    ...toRecord(credential),
    known_password_id: knownPasswordId,
    source: source && { ...toSource(source), pii_tags: source.piiTags },
    remediated_at: formatTimeOrNull(remediatedAtMs),
    ignored_at: formatTimeOrNull(ignoredAtMs),
  }
}

function toTenantCredential(credential: SandboxCredential): unknown {
  if ('raw' in credential) return credential.raw
  return { ...(toFeedItem(credential) as object), credential_hash: hashPair(credential) }
}

function toSearchCredential(
  credential: SandboxCredential,
  include: readonly CredentialInclude[],
): unknown {
  if ('raw' in credential) return credential.raw
  const { source, knownPasswordId, authDomains } = credential
  return {
    ...toRecord(credential),
    source: source && {
      ...toSource(source),
      is_alert_enabled: true,
      pii_tags: source.piiTags,
      url: null,
    },
    known_password_id: include.includes('known_password_id') ? knownPasswordId : null,
    credential_hash: hashPair(credential),
    event_uid: credential.eventUid ?? null,
    ...(include.includes('auth_domains') && { auth_domains: authDomains.slice(0, maxIncluded) }),
    ...(include.includes('urls') && {
      urls: authDomains.slice(0, maxIncluded).map((host) => `https://${host}/login`),
    }),
  }
}

function toRecord(credential: SandboxCredential): Record<string, unknown> {
  return {
    id: credential.id,
    source_id: credential.source?.id ?? null,
    imported_at: formatOffsetTime(credential.importedAtMs),
    identity_name: credential.identityName,
    hash: credential.hash,
    hash_type: credential.hashType,
    domain: credential.domain,
  }
}

/** Identifies the pair of identity and secret without revealing it; null if there is no secret. */
export function hashPair({ identityName, hash }: SandboxCredential): string | null {
  if (hash === null) return null
  return createHash('sha256')
    .update(JSON.stringify([identityName, hash]))
    .digest('hex')
}

function toSource(source: NonNullable<SandboxCredential['source']>): Record<string, unknown> {
  return {
    id: source.id,
    name: source.name,
    description_en: `What ${source.name} is.`,
    description_fr: `Ce que ${source.name} est.`,
    breached_at: formatTimeOrNull(source.breachedAtMs),
    leaked_at: formatTimeOrNull(source.leakedAtMs),
  }
}

function formatTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : formatOffsetTime(ms)
}

const time = z.string().refine((text) => !Number.isNaN(parseInstant(text)), 'not a date-time')
const include = z.enum(credentialIncludes)
const word = z.string().min(1)

type CredentialInclude = z.infer<typeof include>

/**
 * The body of the v4 search. For limits and defaults see docs/api-notes.md, Page sizes, Cursors and
 * order.
 */
const credentialSearchBody = z.object({
  query: z.discriminatedUnion('type', [
    z.object({ type: z.literal('domain'), fqdn: word }),
    z.object({ type: z.literal('auth_domain'), fqdn: word }),
    z.object({ type: z.literal('secret'), secret: word }),
    z.object({ type: z.literal('email'), email: word }),
    z.object({ type: z.literal('keyword'), keyword: word }),
  ]),
  filters: z
    .object({
      imported_at: z.object({ gte: time.nullish(), lte: time.nullish() }).optional(),
    })
    .default({}),
  from: z.string().nullish(),
  size: z.int().min(1).max(10_000).default(10),
  include: z.array(include).default([]),
  order: z.enum(['asc', 'desc']).default('desc'),
})

type CredentialSearchBody = z.infer<typeof credentialSearchBody>

/**
 * Query parameters of the v3 feed. No maximum of `size` is published (docs/api-notes.md, Page
 * sizes).
 */
const credentialFeedQuery = z.object({
  size: z.coerce.number().int().min(1).default(20),
  from: z.string().optional(),
})

/** Query parameters of the tenant's feed (docs/api-notes.md, Cursors and order). */
const tenantCredentialsQuery = credentialFeedQuery.extend({
  order_type: z.enum(orders).default('desc'),
})

const credentialUrlsBody = z.object({
  credential_hash: word,
  size: z.int().min(1).max(5_000).default(100),
  from: z.string().nullish(),
})

function credentialMatcher(
  { query, filters }: CredentialSearchBody,
  filtersImportedAt: boolean,
): (credential: SandboxCredential) => boolean {
  const isFiltered = filtersImportedAt || query.type === 'auth_domain'
  const { gte, lte } = (isFiltered ? filters.imported_at : null) ?? {}
  const since = gte ? parseInstant(gte) : -Infinity
  const until = lte ? parseInstant(lte) : Infinity
  const matchesQuery = queryMatcher(query)
  return (credential) =>
    credential.importedAtMs >= since && credential.importedAtMs <= until && matchesQuery(credential)
}

/** Returns a test for what each kind of query matches (docs/api-notes.md, Credentials). */
function queryMatcher(
  query: CredentialSearchBody['query'],
): (credential: SandboxCredential) => boolean {
  switch (query.type) {
    case 'domain':
      return ({ domain }) => domain === query.fqdn
    case 'auth_domain':
      return ({ authDomains }) => authDomains.includes(query.fqdn)
    case 'secret':
      return ({ hash }) => hash === query.secret
    case 'email':
      return ({ identityName }) => identityName?.toLowerCase() === query.email.toLowerCase()
    case 'keyword':
      return ({ identityName }) => identityName?.split('@')[0]?.includes(query.keyword) === true
  }
}

/** Pages of scans over credentials or cookies in any order, with opaque cursors whose misuse is counted. */
interface CredentialPages {
  /** Returns null if the cursor is refused. */
  read<Entry extends Placed>(page: CursorPageRequest<Entry>): CursorPage<Entry> | null
  expireCursors: () => void
  changedScans: () => number
  cursors: Persistent
}

interface CursorPageRequest<Entry> {
  /** The whole request except the cursor, which is valid for this request only. */
  scanQuery: unknown
  entries: readonly Entry[]
  order: 'asc' | 'desc'
  size: number
  from: string | null
  matches: (entry: Entry) => boolean
}

interface CursorPage<Entry> {
  shown: Entry[]
  next: NextCursor
}

function createCredentialPages(settings: SandboxSettings): CredentialPages {
  const habits = createPageHabits(settings, settings.seed + 5)
  const cursors = createCursorWatch()

  return {
    cursors,
    expireCursors: cursors.expireAll,
    changedScans: cursors.changedScans,
    read({ scanQuery, entries, order, size, from, matches }) {
      const position = from === null ? null : decodeExact(from)
      if (from !== null && (!position || cursors.accept(from, scanQuery) === 'refused')) return null
      const request = { order, size, from: position, matches, isHidden: () => false }
      const { items, next } = takePage(entries, request, habits)
      if (next && next !== 'same') cursors.issue(encodeCursor(next), scanQuery)
      return { shown: items, next }
    },
  }
}

/** Accepts a cursor only exactly as it was issued, not one that lost its URL encoding. */
function decodeExact(cursor: string): Position | null {
  const position = decodeCursor(cursor)
  return position && encodeCursor(position) === cursor ? position : null
}

/** A credential with its position in some order. */
interface PlacedCredential extends Placed {
  credential: SandboxCredential
}

/** Sorts by import time, then id. */
function sortByImport(credentials: readonly SandboxCredential[]): PlacedCredential[] {
  return sortByPosition(credentials, ({ importedAtMs }) => importedAtMs)
}

/**
 * Sorts by reversed domain and id, as the documented cursor suggests. This order of the searches
 * has nothing to do with time (docs/api-notes.md, Cursors and order).
 */
function sortForSearch(credentials: readonly SandboxCredential[]): PlacedCredential[] {
  return sortByPosition(
    credentials,
    () => 0,
    ({ domain, id }) => `${(domain ?? '').split('.').toReversed().join('.')} ${paddedId(id)}`,
  )
}

/** Sorts for the v3 feed, and gives the direction in which it is read. */
function sortForFeed(
  credentials: readonly SandboxCredential[],
  { credentialOrder, seed }: Pick<SandboxSettings, 'credentialOrder' | 'seed'>,
): { entries: PlacedCredential[]; order: 'asc' | 'desc' } {
  switch (credentialOrder) {
    case 'newest':
      return { entries: sortByImport(credentials), order: 'desc' }
    case 'ascending':
      return { entries: sortByImport(credentials), order: 'asc' }
    case 'shuffled':
      return {
        entries: sortByPosition(credentials, ({ id }) => hashText(`${seed} ${id}`)),
        order: 'asc',
      }
  }
}

function sortByPosition(
  credentials: readonly SandboxCredential[],
  readKey: (credential: SandboxCredential) => number,
  readName: (credential: SandboxCredential) => string = ({ id }) => paddedId(id),
): PlacedCredential[] {
  return credentials
    .map((credential) => ({
      createdAtMs: readKey(credential),
      uid: readName(credential),
      credential,
    }))
    .sort((left, right) => comparePositions(toPosition(left), toPosition(right)))
}

function paddedId(id: number): string {
  return String(id).padStart(16, '0')
}

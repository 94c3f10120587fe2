/** Credentials over HTTP: the feeds of an identifier and of the tenant, the searches, triage; and stolen cookies. */
import {
  credentialOperations,
  type WireCookieSearchBody,
  type WireCredentialSearchBody,
} from '../../upstream/resources/credentials.ts'
import type { RequestOf } from '../../upstream/resources/operation.ts'
import { inOrder, type Pages, toWirePage } from '../api/pages.ts'
import { type Caller, on, Refusal, requireOwn, type Route } from '../api/routes.ts'
import { triaged } from '../api/search.ts'
import type { SearchQuota } from '../api/search-quota.ts'
import { comparePositions, type History, type Placed, toPosition } from '../history/history.ts'
import { readStolen } from '../history/texts.ts'
import { makeUuid, type SandboxSettings } from '../options.ts'
import { formatOffsetTime, formatOrNull, parseInstant } from '../times.ts'
import { type Credentials, hashPair, type SandboxCredential } from './credentials.ts'

interface CredentialParts {
  settings: SandboxSettings
  credentials: Credentials
  /** Whose stealer logs hold the cookies. */
  history: History
  quota: SearchQuota
  pages: Pages
  /** Returns an identifier with its tenant; undefined if there is none. */
  identifier: (id: number) => { tenantId: number } | undefined
}

export function credentialRoutes(parts: CredentialParts): Route[] {
  return [...feedRoutes(parts), ...searchRoutes(parts), actRoute(parts), cookieRoute(parts)]
}

function feedRoutes({ credentials, pages, identifier }: CredentialParts): Route[] {
  function answerTenant(
    {
      size = 20,
      from,
      order_type: order = 'desc',
    }: RequestOf<typeof credentialOperations.tenantFeed>,
    caller: Caller,
  ): unknown {
    const page = pages.read({
      scan: ['tenant', order],
      entries: sorted(credentials.all(), byImport),
      order,
      size,
      from,
      matches: ({ credential }) => isOwn(credential, caller, identifier),
    })
    return toWirePage(page, ({ credential }) =>
      toFeedItem(credential, { credential_hash: hashPair(credential) }),
    )
  }

  return [
    on(credentialOperations.feed, ({ identifier_id, size = 20, from }, caller) => {
      const id = Number(identifier_id)
      requireOwn(identifier(id), 'identifier', caller)
      const page = pages.read({
        scan: ['feed', id],
        entries: sorted(credentials.all(), byImport),
        order: 'desc',
        size,
        from,
        matches: ({ credential }) => credential.identifierIds.includes(id),
      })
      return toWirePage(page, ({ credential }) => toFeedItem(credential))
    }),
    on(credentialOperations.tenantFeed, answerTenant),
    on(credentialOperations.tenantFeedByPost, answerTenant),
  ]
}

function searchRoutes({ settings, credentials, quota, pages }: CredentialParts): Route[] {
  function answer(body: WireCredentialSearchBody): unknown {
    const { from, size = 10, order = 'desc', include = [] } = body
    const { credentialSizeLimit } = settings
    if (credentialSizeLimit !== null && size > credentialSizeLimit) {
      throw new Refusal(504, 'upstream request timeout')
    }
    const matches = searchTest(body)
    const page = pages.read({
      scan: ['credentials', { ...body, from: null, size: null }],
      entries: sorted(credentials.all(), byReversedDomain),
      order,
      size,
      from,
      matches: ({ credential }) => matches(credential),
    })
    return toWirePage(page, ({ credential }) => toSearchItem(credential, include))
  }

  return [
    on(credentialOperations.search, (body, caller) => {
      const page = answer(body)
      quota.charge(caller, ['credentials', body.query])
      return page
    }),
    on(credentialOperations.searchAstp, answer),
    on(credentialOperations.urls, ({ credential_hash: hash, size = 100, from }) => {
      // whatever the tenant: the search that shows the hash is global, too
      const found = credentials.all().filter((one) => hashPair(one) === hash)
      const hosts = [...new Set(found.flatMap(({ authDomains }) => authDomains))].toSorted()
      const entries = inOrder(hosts.map((domain) => ({ domain })))
      const page = pages.read({ scan: ['urls', hash], entries, size, from })
      return toWirePage(page, ({ domain }) => ({
        url: loginUrl(domain),
        domain,
        credential_hash: hash,
      }))
    }),
  ]
}

function actRoute({ settings, credentials, identifier }: CredentialParts): Route {
  return on(credentialOperations.act, ({ targets, action }, caller) => {
    const own = credentials.all().filter((one) => isOwn(one, caller, identifier))
    const found = targets.map(({ credential_hash: hash }) =>
      own.filter((one) => hashPair(one) === hash),
    )
    if (found.some(({ length }) => length === 0)) throw new Refusal(404, 'no such credential')
    for (const one of found.flat()) Object.assign(one, triaged(action.type, settings.now()))
    return null
  })
}

function isOwn(
  { identifierIds }: SandboxCredential,
  { tenantId }: Caller,
  identifier: CredentialParts['identifier'],
): boolean {
  return identifierIds.some((id) => identifier(id)?.tenantId === tenantId)
}

/** Cookies of all stealer logs, by when they were imported, which is when their log was created. */
function cookieRoute({ history, pages }: CredentialParts): Route {
  return on(credentialOperations.cookies, (body) => {
    const { from, size = 100, order = 'asc' } = body
    const page = pages.read({
      scan: ['cookies', { ...body, from: null, size: null }],
      entries: history
        .all()
        .flatMap((event) =>
          (readStolen(event)?.cookies ?? []).map((cookie, index) => ({
            createdAtMs: event.createdAtMs,
            uid: makeUuid(`cookie/${event.uid}/${index}`),
            expiresAtMs: parseInstant(cookie.expires_utc),
            eventUid: event.uid,
            cookie: { ...cookie, domain: cookie.host_key.replace(/^\./, '') },
          })),
        )
        .toSorted((left, right) => comparePositions(toPosition(left), toPosition(right))),
      order,
      size,
      from,
      matches: cookieTest(body),
    })
    return toWirePage(page, ({ uid, createdAtMs, expiresAtMs, eventUid, cookie }) => ({
      uuid: uid,
      domain: cookie.domain,
      expires_at: formatOffsetTime(expiresAtMs),
      imported_at: formatOffsetTime(createdAtMs),
      name: cookie.name,
      path: cookie.path,
      event_uid: eventUid,
      value: cookie.value,
    }))
  })
}

interface PlacedCookie extends Placed {
  expiresAtMs: number
  cookie: { domain: string; name: string; path: string; value: string }
}

function cookieTest(body: WireCookieSearchBody): (cookie: PlacedCookie) => boolean {
  const after = (time: string | undefined): number => (time ? parseInstant(time) : -Infinity)
  const [importedMs, expiresMs] = [after(body.imported_after), after(body.expires_after)]
  const isWanted = (wanted: readonly string[] | undefined, word: string): boolean =>
    !wanted?.length || wanted.includes(word)
  return ({ createdAtMs, expiresAtMs, cookie }) =>
    createdAtMs > importedMs &&
    expiresAtMs > expiresMs &&
    isWanted(body.domain === undefined ? undefined : [body.domain], cookie.domain) &&
    isWanted(body.values, cookie.value) &&
    isWanted(body.names, cookie.name) &&
    isWanted(body.paths, cookie.path)
}

function searchTest({
  query,
  filters,
}: WireCredentialSearchBody): (credential: SandboxCredential) => boolean {
  const { gte, lte } = filters?.imported_at ?? {}
  const [since, until] = [gte ? parseInstant(gte) : -Infinity, lte ? parseInstant(lte) : Infinity]
  const matches = queryTest(query)
  return (credential) =>
    credential.importedAtMs >= since && credential.importedAtMs <= until && matches(credential)
}

/** Returns a test for what each kind of query matches (docs/api-notes.md, Credentials). */
function queryTest(
  query: WireCredentialSearchBody['query'],
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

/**
 * Maximum number of auth domains, and of URLs, that a credential lists (docs/api-notes.md,
 * Credentials).
 */
const maxIncluded = 100

function loginUrl(host: string): string {
  return `https://${host}/login`
}

function toFeedItem(credential: SandboxCredential, more: object = {}): unknown {
  if ('raw' in credential) return credential.raw
  return {
    ...more,
    ...toRecord(credential),
    known_password_id: credential.knownPasswordId,
    remediated_at: formatOrNull(credential.remediatedAtMs, formatOffsetTime),
    ignored_at: formatOrNull(credential.ignoredAtMs, formatOffsetTime),
  }
}

function toSearchItem(credential: SandboxCredential, include: readonly string[]): unknown {
  if ('raw' in credential) return credential.raw
  const domains = credential.authDomains.slice(0, maxIncluded)
  const record = toRecord(credential)
  return {
    ...record,
    source: record.source && { ...record.source, is_alert_enabled: true, url: null },
    known_password_id: include.includes('known_password_id') ? credential.knownPasswordId : null,
    credential_hash: hashPair(credential),
    event_uid: credential.eventUid ?? null,
    ...(include.includes('auth_domains') && { auth_domains: domains }),
    ...(include.includes('urls') && { urls: domains.map(loginUrl) }),
  }
}

function toRecord({ id, source, importedAtMs, ...credential }: SandboxCredential): {
  source: object | null
  [field: string]: unknown
} {
  return {
    id,
    source_id: source?.id ?? null,
    imported_at: formatOffsetTime(importedAtMs),
    identity_name: credential.identityName,
    hash: credential.hash,
    hash_type: credential.hashType,
    domain: credential.domain,
    source: source && {
      id: source.id,
      name: source.name,
      description_en: `What ${source.name} is.`,
      description_fr: `Ce que ${source.name} est.`,
      breached_at: formatOrNull(source.breachedAtMs, formatOffsetTime),
      leaked_at: formatOrNull(source.leakedAtMs, formatOffsetTime),
      pii_tags: source.piiTags,
    },
  }
}

/** A credential with its position in some order. */
interface PlacedCredential extends Placed {
  credential: SandboxCredential
}

type Key = (credential: SandboxCredential) => [createdAtMs: number, uid: string]

function sorted(credentials: readonly SandboxCredential[], keyOf: Key): PlacedCredential[] {
  return credentials
    .map((credential) => {
      const [createdAtMs, uid] = keyOf(credential)
      return { createdAtMs, uid, credential }
    })
    .toSorted((left, right) => comparePositions(toPosition(left), toPosition(right)))
}

const byImport: Key = (credential) => [credential.importedAtMs, paddedId(credential)]

/**
 * As the documented cursor suggests. This order of the searches has nothing to do with time
 * (docs/api-notes.md, Cursors and order).
 */
const byReversedDomain: Key = (credential) => [
  0,
  `${(credential.domain ?? '').split('.').toReversed().join('.')} ${paddedId(credential)}`,
]

function paddedId({ id }: SandboxCredential): string {
  return String(id).padStart(16, '0')
}

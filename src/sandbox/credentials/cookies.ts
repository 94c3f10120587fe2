/** Stolen cookies: those of all stealer logs, in the order of import, as their search shows them. */
import { z } from 'zod'
import { orders } from '../../upstream/resources/enumerations.ts'
import { parseInstant } from '../api/filters.ts'
import { formatOffsetTime, readStolen } from '../history/draft.ts'
import type { History, Placed, SandboxEvent } from '../history/history.ts'
import { makeUuid } from '../monitoring/store.ts'

const time = z.string().refine((text) => !Number.isNaN(parseInstant(text)), 'not a date-time')
const words = z.array(z.string()).max(10)

/** For limits and defaults see docs/api-notes.md, Page sizes. No field is required. */
export const cookieSearchBody = z.object({
  domain: z.string().nullish(),
  values: z.array(z.string()).max(1).nullish(),
  names: words.nullish(),
  paths: words.nullish(),
  imported_after: time.nullish(),
  expires_after: time.nullish(),
  size: z.int().min(1).max(2_000).default(100),
  from: z.string().nullish(),
  order: z.enum(orders).default('asc'),
})
export type CookieSearchBody = z.infer<typeof cookieSearchBody>

/** A cookie by when it was imported, which is when its log was created. */
interface PlacedCookie extends Placed {
  expiresAtMs: number
  item: { domain: string; name: string; path: string; value: string; [field: string]: unknown }
}

export function listCookies(events: History): PlacedCookie[] {
  return events
    .all()
    .flatMap(cookiesOf)
    .toSorted(
      (left, right) => left.createdAtMs - right.createdAtMs || (left.uid < right.uid ? -1 : 1),
    )
}

const known = new WeakMap<SandboxEvent, PlacedCookie[]>()

/** The same on each read. */
function cookiesOf(event: SandboxEvent): PlacedCookie[] {
  const made = known.get(event) ?? makeCookies(event)
  known.set(event, made)
  return made
}

function makeCookies(event: SandboxEvent): PlacedCookie[] {
  return (readStolen(event)?.cookies ?? []).map((cookie, index) => {
    const uuid = makeUuid(`cookie/${event.uid}/${index}`)
    const expiresAtMs = parseInstant(cookie.expires_utc)
    return {
      createdAtMs: event.createdAtMs,
      uid: uuid,
      expiresAtMs,
      item: {
        uuid,
        domain: cookie.host_key.replace(/^\./, ''),
        expires_at: formatOffsetTime(expiresAtMs),
        imported_at: formatOffsetTime(event.createdAtMs),
        name: cookie.name,
        path: cookie.path,
        event_uid: event.uid,
        value: cookie.value,
      },
    }
  })
}

export function cookieMatcher(body: CookieSearchBody): (cookie: PlacedCookie) => boolean {
  const importedMs = body.imported_after ? parseInstant(body.imported_after) : -Infinity
  const livesMs = body.expires_after ? parseInstant(body.expires_after) : -Infinity
  const isWanted = (wanted: readonly string[] | null | undefined, word: string): boolean =>
    !wanted?.length || wanted.includes(word)
  return ({ createdAtMs, expiresAtMs, item }) =>
    createdAtMs > importedMs &&
    expiresAtMs > livesMs &&
    isWanted(body.domain ? [body.domain] : null, item.domain) &&
    isWanted(body.values, item.value) &&
    isWanted(body.names, item.name) &&
    isWanted(body.paths, item.path)
}

/**
 * Events: searched in the tenant, an identifier group, an identifier or globally, read one by one, and
 * their expanded fields.
 */
import { isNotThere, isUnknownPath, type Capabilities } from '../capabilities.ts'
import { ServiceError } from '../service-error.ts'
import {
  expansion,
  globalSearchBody,
  groupSearchBody,
  wireSeverityFilters,
  wireTypeFilters,
  type EventQuery,
  type Expansion,
  type GlobalSearchBody,
  type GroupSearchBody,
} from '../wire/events.ts'
import { wireSearchPage, type WireSearchPage } from '../wire/page.ts'
import { checkRequest } from './check-request.ts'
import { readActivity, readEvent, saysNoDetail, type EventAnswer } from './event-answer.ts'
import {
  ask,
  pathPart,
  read,
  type Asked,
  type AskedOfTier,
  type UncertainParts,
} from './operation.ts'
import { searchPageOf, type SearchPage } from './search-page.ts'

/** Which tier a search in a feed counts against is not published (facts.md 2.2): the caller says. */
type FeedSearch = { body: GroupSearchBody } & Required<Pick<AskedOfTier, 'tier'>> & Asked

export interface EventOperations {
  /**
   * One page of an identifier group's events.
   * `POST /firework/v4/events/identifier_groups/{id}/_search`.
   */
  searchGroupEvents(request: { groupId: number } & FeedSearch): Promise<SearchPage>
  /**
   * One page of all events that the tenant watches for. `POST /firework/v4/events/tenant/_search`; tier
   * and body as in a group. Not every server has it; so for the next one.
   */
  searchTenantEvents(request: FeedSearch): Promise<SearchPage>
  /** One page of an identifier's events. `POST /firework/v4/events/identifiers/{id}/_search`. */
  searchIdentifierEvents(request: { identifier: number } & FeedSearch): Promise<SearchPage>
  /** One page of a global search, which costs quota. `POST /firework/v4/events/global/_search`; search tier. */
  searchEvents(request: { body: GlobalSearchBody } & AskedOfTier): Promise<SearchPage>
  /**
   * The full event, or why there is none; only the latter is final. `GET /firework/v4/events/`; basic
   * tier. What has no model there is asked of `getActivity`, where the server has that.
   */
  getEvent(request: { uid: string } & Asked): Promise<EventAnswer>
  /** The full event of any type in its older shape. `GET /firework/v2/activities/`; basic tier. */
  getActivity(request: { uid: string } & Asked): Promise<EventAnswer>
  /**
   * Which words a `type` filter may hold, groups and single types. `GET /firework/v4/events/filters/types`;
   * basic tier. Not every server has it; so for the next one.
   */
  eventTypeFilters(asked: Asked): Promise<string[]>
  /** Which words a `severity` filter may hold. `GET /firework/v4/events/filters/severities`. */
  eventSeverityFilters(asked: Asked): Promise<string[]>
  /**
   * One page of the credentials or cookies in an event, secrets in clear; only stealer logs have any.
   * `GET /firework/v4/events/_expand`; basic tier.
   */
  expandEvent(request: { expansion: Expansion } & Asked): Promise<WireSearchPage>
}

export function createEventOperations(parts: UncertainParts): EventOperations {
  async function searchFeed(where: string, { body, ...asked }: FeedSearch): Promise<SearchPage> {
    const path = `/firework/v4/events/${where}/_search`
    const checked = checkRequest(groupSearchBody, body)
    const [secrets, pageSize] = [secretsIn(checked.query), checked.size]
    const request = { method: 'POST', path, body: checked, secrets, pageSize } as const
    return searchPageOf(await ask(parts, request, asked))
  }

  return {
    searchGroupEvents: ({ groupId, ...search }) =>
      searchFeed(`identifier_groups/${pathPart(groupId)}`, search),
    searchTenantEvents: (search) => searchFeed('tenant', search),
    searchIdentifierEvents: ({ identifier, ...search }) =>
      searchFeed(`identifiers/${pathPart(identifier)}`, search),
    async searchEvents({ body, ...asked }) {
      const path = '/firework/v4/events/global/_search'
      const checked = checkRequest(globalSearchBody, body)
      const [secrets, pageSize] = [secretsIn(checked.query), checked.size]
      const tier = 'search'
      const request = { method: 'POST', path, body: checked, secrets, pageSize, tier } as const
      return searchPageOf(await ask(parts, request, asked))
    },
    async getEvent({ uid, ...asked }) {
      await parts.lookup.ensure(asked.signal)
      const path = `/firework/v4/events/?uid=${pathPart(uid)}`
      const call = { method: 'GET', path, tier: 'basic', ...asked } as const
      const answer = readEvent(await parts.session.call(call, saysNoDetail), uid)
      if (answer.kind === 'detail' || answer.why === 'mismatch') return answer
      const older = await askOlder(parts.capabilities, () => getActivity(parts, { uid, ...asked }))
      return older?.kind === 'detail' ? older : answer
    },
    getActivity: (asked) => getActivity(parts, asked),
    async eventTypeFilters(asked) {
      const request = { method: 'GET', path: '/firework/v4/events/filters/types' } as const
      const { categories } = await read(parts, wireTypeFilters, request, asked)
      const words = (categories ?? []).flatMap(({ value, types }) => [
        value,
        ...valuesOf(types ?? []),
      ])
      return [...new Set(words)]
    },
    async eventSeverityFilters(asked) {
      const request = { method: 'GET', path: '/firework/v4/events/filters/severities' } as const
      return valuesOf((await read(parts, wireSeverityFilters, request, asked)).severities ?? [])
    },
    async expandEvent({ expansion: wanted, ...asked }) {
      const { uid, field, size, from } = checkRequest(expansion, wanted)
      const query = new URLSearchParams({ uid, field, size: String(size) })
      if (from !== undefined) query.set('from', from)
      const path = `/firework/v4/events/_expand?${query.toString()}`
      return read(parts, wireSearchPage, { method: 'GET', path, pageSize: size }, asked)
    },
  }
}

async function getActivity(
  parts: UncertainParts,
  { uid, ...asked }: { uid: string } & Asked,
): Promise<EventAnswer> {
  const path = `/firework/v2/activities/?uid=${pathPart(uid)}`
  try {
    return readActivity(await ask(parts, { method: 'GET', path }, asked), uid)
  } catch (error) {
    if (!(error instanceof ServiceError) || isUnknownPath(error)) throw error
    if (error.status === 404) return { kind: 'none', why: 'not_found' }
    if (error.serviceCode === 'UNSUPPORTED') return { kind: 'none', why: 'unsupported' }
    throw error
  }
}

/**
 * What the older operation gives; undefined where it is not there, closed to the key, or makes no sense.
 * A 404 may be about the path or about the event: it counts as the path's, for an hour, only where the
 * operation never gave anything.
 */
async function askOlder(
  capabilities: Capabilities,
  getActivity: () => Promise<EventAnswer>,
): Promise<EventAnswer | undefined> {
  const known = await capabilities.read('activities')
  if (known?.has === false) return undefined
  try {
    const answer = await getActivity()
    if (answer.kind === 'detail' && !known) await capabilities.note('activities', true)
    return answer
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    if (!known && (isUnknownPath(error) || error.status === 405)) {
      await capabilities.note('activities', false, { briefly: true })
    }
    if (isNotThere(error) || error.reason === 'contract') return undefined
    throw error
  }
}

function valuesOf(words: readonly { value: string }[]): string[] {
  return words.map(({ value }) => value)
}

/** What of a query may stand in no message. */
function secretsIn(query: EventQuery | undefined): string[] {
  if (query?.type === 'secret') return [query.secret]
  return query?.type === 'credentials' ? [query.password] : []
}

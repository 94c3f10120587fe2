/** Events: searched in an identifier group or globally, read one by one, and their expanded fields. */
import {
  expansion,
  globalSearchBody,
  groupSearchBody,
  type EventQuery,
  type Expansion,
  type GlobalSearchBody,
  type GroupSearchBody,
} from '../wire/events.ts'
import { wireSearchPage, type WireSearchPage } from '../wire/page.ts'
import { checkRequest } from './check-request.ts'
import { readEvent, saysNoDetail, type EventAnswer } from './event-answer.ts'
import {
  ask,
  pathPart,
  read,
  type Asked,
  type AskedOfTier,
  type OperationParts,
} from './operation.ts'
import { searchPageOf, type SearchPage } from './search-page.ts'

export interface EventOperations {
  /**
   * One page of an identifier group's events. `POST /firework/v4/events/identifier_groups/{id}/_search`;
   * which tier it counts against is not published (facts.md 2.2): the caller says.
   */
  searchGroupEvents(
    request: { groupId: number; body: GroupSearchBody } & Required<Pick<AskedOfTier, 'tier'>> &
      Asked,
  ): Promise<SearchPage>
  /** One page of a global search, which costs quota. `POST /firework/v4/events/global/_search`; search tier. */
  searchEvents(request: { body: GlobalSearchBody } & AskedOfTier): Promise<SearchPage>
  /** The full event, or why there is none; only the latter is final. `GET /firework/v4/events/`; basic tier. */
  getEvent(request: { uid: string } & Asked): Promise<EventAnswer>
  /**
   * One page of the credentials or cookies in an event, secrets in clear; only stealer logs have any.
   * `GET /firework/v4/events/_expand`; basic tier.
   */
  expandEvent(request: { expansion: Expansion } & Asked): Promise<WireSearchPage>
}

export function createEventOperations(parts: OperationParts): EventOperations {
  return {
    async searchGroupEvents({ groupId, body, ...asked }) {
      const path = `/firework/v4/events/identifier_groups/${pathPart(groupId)}/_search`
      const checked = checkRequest(groupSearchBody, body)
      const secrets = secretsIn(checked.query)
      return searchPageOf(await ask(parts, { method: 'POST', path, body: checked, secrets }, asked))
    },
    async searchEvents({ body, ...asked }) {
      const path = '/firework/v4/events/global/_search'
      const checked = checkRequest(globalSearchBody, body)
      const secrets = secretsIn(checked.query)
      const request = { method: 'POST', path, body: checked, secrets, tier: 'search' } as const
      return searchPageOf(await ask(parts, request, asked))
    },
    async getEvent({ uid, ...asked }) {
      await parts.lookup.ensure(asked.signal)
      const path = `/firework/v4/events/?uid=${pathPart(uid)}`
      const call = { method: 'GET', path, tier: 'basic', ...asked } as const
      return readEvent(await parts.session.call(call, saysNoDetail), uid)
    },
    async expandEvent({ expansion: wanted, ...asked }) {
      const { uid, field, size, from } = checkRequest(expansion, wanted)
      const query = new URLSearchParams({ uid, field, size: String(size) })
      if (from !== undefined) query.set('from', from)
      const path = `/firework/v4/events/_expand?${query.toString()}`
      return read(parts, wireSearchPage, { method: 'GET', path }, asked)
    },
  }
}

/** What of a query may stand in no message. */
function secretsIn(query: EventQuery | undefined): string[] {
  if (query?.type === 'secret') return [query.secret]
  return query?.type === 'credentials' ? [query.password] : []
}

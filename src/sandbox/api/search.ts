/** Events: searched in all or part of what a tenant watches for and globally, read one by one, and triaged. */
import { eventOperations, type GroupSearchBody } from '../../upstream/resources/events.ts'
import { eventSeverities, type TriageAction } from '../../upstream/resources/enumerations.ts'
import { readStolen } from '../history/texts.ts'
import type { History, SandboxEvent } from '../history/history.ts'
import type { SandboxSettings } from '../options.ts'
import {
  toFullEvent,
  toGlobalItem,
  toLegacyItem,
  toSearchItem,
  withoutNotes,
} from './event-items.ts'
import { filterTest, labelled, typeCategories } from './filters.ts'
import { inOrder, type Page, type Pages, toWirePage } from './pages.ts'
import { queryTest, toDocument } from './query.ts'
import { type Caller, on, Refusal, requireOwn, type Route } from './routes.ts'
import type { SearchQuota } from './search-quota.ts'

export interface SearchParts {
  settings: SandboxSettings
  history: History
  quota: SearchQuota
  pages: Pages
  /** Returns an identifier with its tenant; undefined if there is none. */
  identifier: (id: number) => { tenantId: number } | undefined
}

export function eventRoutes(parts: SearchParts): Route[] {
  const { history, settings, quota } = parts
  const isOwn = (event: SandboxEvent, caller: Caller): boolean => isShownTo(event, caller, settings)

  function answerFeed(
    scan: string,
    events: readonly SandboxEvent[],
    body: GroupSearchBody,
  ): ReturnType<typeof toWirePage> {
    const showsIgnored = settings.showsIgnored || body.filters?.is_ignored === true
    const isHidden = ({ ignoredAtMs }: SandboxEvent): boolean =>
      ignoredAtMs !== null && !showsIgnored
    return toWirePage(readPage(parts, { scan, events, body, isHidden }), toSearchItem)
  }

  return [
    on(eventOperations.searchGroup, ({ identifier_group_id, ...body }, caller) => {
      const id = Number(identifier_group_id)
      const group = settings.groups.find((known) => known.id === id)
      requireOwn(group, 'identifier group', caller)
      return answerFeed(`group ${id}`, history.ofGroup(id), body)
    }),
    on(eventOperations.searchIdentifier, ({ identifier_id, ...body }, caller) => {
      const id = Number(identifier_id)
      requireOwn(parts.identifier(id), 'identifier', caller)
      const isAbout = ({ identifiers }: SandboxEvent): boolean =>
        identifiers.some((one) => one.id === id)
      return answerFeed(`identifier ${id}`, history.inOrder().filter(isAbout), body)
    }),
    on(eventOperations.searchTenant, (body, caller) =>
      answerFeed(
        'tenant',
        history.inOrder().filter((event) => isOwn(event, caller)),
        body,
      ),
    ),
    on(eventOperations.searchGlobal, (body, caller) => {
      const view = (event: SandboxEvent): SandboxEvent =>
        isOwn(event, caller) ? event : withoutNotes(event)
      const page = readPage(parts, { scan: 'global', events: history.inOrder(), body, view })
      quota.charge(caller, ['events', body.query])
      return toWirePage(page, (event) => toGlobalItem(view(event)))
    }),
    ...readRoutes(parts),
    ...triageRoutes(parts),
  ]
}

/** Whether one of the caller's identifier groups shows the event. */
export function isShownTo(
  { groupIds }: SandboxEvent,
  { tenantId }: Pick<Caller, 'tenantId'>,
  { groups }: Pick<SandboxSettings, 'groups'>,
): boolean {
  return groups.some((group) => group.tenantId === tenantId && groupIds.includes(group.id))
}

interface EventPage {
  /** What its cursors are bound to, besides the request's body. */
  scan: string
  events: readonly SandboxEvent[]
  body: GroupSearchBody
  view?: (event: SandboxEvent) => SandboxEvent
  isHidden?: (event: SandboxEvent) => boolean
}

function readPage(
  { settings, pages }: SearchParts,
  { scan, events, body, view = (event) => event, isHidden = () => false }: EventPage,
): Page<SandboxEvent> {
  const { from, size = 10, order = 'desc', filters = {}, query } = body
  const passes = filterTest(filters, settings.materializedFilter)
  const holds = query && queryTest(query)
  const matches = (event: SandboxEvent): boolean =>
    passes(view(event)) && (!holds || holds(toDocument(event)))
  const asked = [scan, { ...body, from: null, size: null }] // a smaller page goes on where it stands
  return pages.read({ scan: asked, entries: events, order, size, from, matches, isHidden })
}

function readRoutes({ settings, history, pages }: SearchParts): Route[] {
  return [
    on(eventOperations.types, () => ({ categories: typeCategories() })),
    on(eventOperations.severities, () => ({
      severities: eventSeverities.map(labelled),
    })),
    on(eventOperations.get, ({ uid }, caller) => {
      const event = requireEvent(uid, caller, { history, settings })
      if (event.data !== null) return toFullEvent(event)
      throw new Refusal(400, 'no model for this type', { code: 'UNSUPPORTED' })
    }),
    on(eventOperations.activity, ({ uid }, caller) => {
      return { activity: toLegacyItem(requireEvent(uid, caller, { history, settings })) }
    }),
    on(eventOperations.expand, ({ uid, field, size = 20, from }, caller) => {
      const stolen = readStolen(requireEvent(uid, caller, { history, settings }))
      if (!stolen) {
        const message = 'an event of this type has nothing to expand'
        throw new Refusal(400, message, { code: 'UNSUPPORTED' })
      }
      const entries = inOrder<{ value: unknown }>(stolen[field].map((value) => ({ value })))
      const page = pages.read({ scan: ['expand', uid, field], entries, size, from })
      return toWirePage(page, ({ value }) => value)
    }),
  ]
}

/** Returns one of the caller's own events. Throws a Refusal if it is none. */
function requireEvent(
  uid: string,
  caller: Caller,
  { history, settings }: Pick<SearchParts, 'history' | 'settings'>,
): SandboxEvent {
  const event = history.get(uid)
  if (!event) throw new Refusal(404, 'no such event')
  if (isShownTo(event, caller, settings)) return event
  throw new Refusal(403, 'an event of another tenant')
}

/**
 * What the service answers for a target that it refuses is not published; here the whole request is
 * refused and changes nothing.
 */
function triageRoutes({ history, settings }: SearchParts): Route[] {
  return [
    on(eventOperations.act, ({ targets, action }, caller) => {
      for (const { uid } of targets) requireEvent(uid, caller, { history, settings })
      for (const { uid } of targets) history.change(uid, triaged(action.type, settings.now()))
      return null
    }),
    on(eventOperations.note, ({ uid, ...noted }, caller) => {
      const event = requireEvent(uid, caller, { history, settings })
      const { tags = event.tags, notes = event.notes, severity = event.override } = noted
      history.change(uid, { tags, notes, override: severity })
      return { uid, tags, notes, severity }
    }),
  ]
}

/** What an action of triage changes of an event or a credential. */
export function triaged(
  action: TriageAction,
  nowMs: number,
): { ignoredAtMs?: number | null; remediatedAtMs?: number | null } {
  const atMs = action.startsWith('un') ? null : nowMs
  return action.endsWith('ignore') ? { ignoredAtMs: atMs } : { remediatedAtMs: atMs }
}

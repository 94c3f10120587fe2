/**
 * What to do about an event, by the operator's configuration alone. Nothing of it comes from a
 * feed, so its addresses may be clicked and its mentions ping.
 */
import { ownFeed, type ThreatEvent } from '../event.ts'
import type { MessagesConfig } from './config.ts'
import { builtInNextSteps } from './types/next-steps.ts'
import { cleanLine } from './sanitize.ts'

/** Of one event; all of it bounded by the configuration. */
export interface Guidance {
  notes: readonly string[]
  /** http or https. */
  runbookUrls: readonly string[]
  /** Slack's ids of users and groups, `here` or `channel`. */
  mentions: readonly string[]
  nextStep: string | null
}

/** Of a message, which may be about several events. */
export interface MessageGuidance extends Omit<Guidance, 'notes' | 'nextStep'> {
  /** "Next step", "Next step, Stealer log", "Note". */
  texts: readonly { label: string; text: string }[]
}

/** What a route says to those who get its events. */
export interface RouteGuidance {
  note?: string | undefined
  runbookUrl?: string | undefined
  mention?: readonly string[] | undefined
  mode: 'live' | 'shadow'
}

interface GuidedEvent {
  feed: string
  /** Names of the routes that took it. */
  routes: readonly string[]
  event: Pick<ThreatEvent, 'type' | 'uid'>
}

export type GuidanceFinder = (guided: GuidedEvent) => Guidance | undefined

/** A route that the configuration no longer has, or that sends nothing, says nothing. */
export function createGuidanceFinder(
  { nextSteps, runbookUrls }: MessagesConfig,
  findRoute: (name: string) => RouteGuidance | undefined,
): GuidanceFinder {
  return ({ feed, routes, event: { type, uid } }) => {
    const isOwn = feed === ownFeed
    if (isOwn && type === 'canary') return undefined
    const live = routes.flatMap((name) => findRoute(name) ?? []).filter(isLive)
    const isOver = isOwn && uid.endsWith('-end')
    const byType = isOwn ? undefined : ownValue(runbookUrls, type)
    return {
      notes: distinct(live.map(({ note }) => note)),
      runbookUrls: distinct([...live.map(({ runbookUrl }) => runbookUrl), byType]),
      mentions: isOver ? [] : distinct(live.flatMap(({ mention }) => mention ?? [])),
      nextStep: (isOwn ? '' : (ownValue(nextSteps, type) ?? builtInNextSteps.get(type))) || null,
    }
  }
}

function isLive({ mode }: RouteGuidance): boolean {
  return mode === 'live'
}

/** A type is a word of upstream, so it may be the name of an inherited property. */
function ownValue(values: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined
}

/** In number, of a message; of next steps the types that each names. */
const guidanceLimits = { notes: 5, runbookUrls: 3, mentions: 20, nextSteps: 3, types: 3 } as const

type GuidedMember = Pick<GuidedEvent, 'event'> & { guidance?: Guidance | undefined }

/** The first of each, in the order of the members. `nameType`: "Stealer log", for a type. */
export function uniteGuidance(
  members: readonly GuidedMember[],
  nameType: (type: string) => string,
): MessageGuidance {
  const unite = (name: 'notes' | 'runbookUrls' | 'mentions'): string[] =>
    distinct(members.flatMap(({ guidance }) => guidance?.[name] ?? [])).slice(
      0,
      guidanceLimits[name],
    )
  const notes = unite('notes').map((text) => ({ label: 'Note', text }))
  return {
    texts: [...uniteNextSteps(members, nameType), ...notes].map(({ label, text }) => ({
      label,
      text: cleanLine(text, Infinity),
    })),
    runbookUrls: unite('runbookUrls'),
    mentions: unite('mentions'),
  }
}

function uniteNextSteps(
  members: readonly GuidedMember[],
  nameType: (type: string) => string,
): MessageGuidance['texts'] {
  const byStep = Map.groupBy(members, ({ guidance }) => guidance?.nextStep ?? '')
  const isForAll = byStep.size === 1
  byStep.delete('')
  return [...byStep].slice(0, guidanceLimits.nextSteps).map(([text, guided]) => {
    const types = distinct(guided.map(({ event }) => nameType(event.type)))
    return { label: isForAll ? 'Next step' : `Next step, ${listTypes(types)}`, text }
  })
}

function listTypes(types: readonly string[]): string {
  const shown = types.slice(0, guidanceLimits.types)
  const more = types.length - shown.length
  return more === 0 ? shown.join(', ') : `${shown.join(', ')} and ${more} more`
}

/** Empty texts say nothing: a route says so to undo what it would inherit. */
function distinct(texts: readonly (string | undefined)[]): string[] {
  return [...new Set(texts.filter((text) => text !== undefined && text !== ''))] as string[]
}

export const noGuidance: MessageGuidance = {
  texts: [],
  runbookUrls: [],
  mentions: [],
}

/**
 * What to do about an event, by the operator's configuration alone: nothing of it comes from a
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

/** In number, of a message. */
const guidanceLimits = { notes: 5, runbookUrls: 3, mentions: 20, nextSteps: 3, types: 3 } as const

type GuidedMember = Pick<GuidedEvent, 'event'> & { guidance?: Guidance | undefined }

/** The first of each, in the order of the members. `nameType`: "Stealer log", for a type. */
export function uniteGuidance(
  members: readonly GuidedMember[],
  nameType: (type: string) => string,
): MessageGuidance {
  const all = members.flatMap(({ guidance }) => guidance ?? [])
  const notes = distinct(all.flatMap((one) => one.notes))
  const runbookUrls = distinct(all.flatMap((one) => one.runbookUrls))
  const mentions = distinct(all.flatMap((one) => one.mentions))
  const limits = guidanceLimits
  const more = {
    notes: notes.length - limits.notes,
    runbooks: runbookUrls.length - limits.runbookUrls,
  }
  return {
    texts: [
      ...uniteNextSteps(members, nameType),
      ...[...notes.slice(0, limits.notes).map(cleanText), ...noteUnshown(more)].map((text) => ({
        label: 'Note',
        text,
      })),
    ],
    runbookUrls: runbookUrls.slice(0, limits.runbookUrls),
    mentions: mentions.slice(0, limits.mentions),
  }
}

/** A reader who acts by what is shown must know that it is not all, and where the rest is. */
function noteUnshown({ notes, runbooks }: { notes: number; runbooks: number }): string[] {
  const unshown = [
    notes > 0 ? `${notes} more ${notes === 1 ? 'note' : 'notes'}` : null,
    runbooks > 0 ? `${runbooks} more ${runbooks === 1 ? 'runbook' : 'runbooks'}` : null,
  ].filter((text) => text !== null)
  return unshown.length === 0 ? [] : [`${unshown.join(', ')}: see the configuration.`]
}

function uniteNextSteps(
  members: readonly GuidedMember[],
  nameType: (type: string) => string,
): MessageGuidance['texts'] {
  const byStep = Map.groupBy(members, ({ guidance }) => guidance?.nextStep ?? '')
  const isForAll = byStep.size === 1
  byStep.delete('')
  const labelFor = (guided: readonly GuidedMember[]): string =>
    `Next step, ${listTypes(distinct(guided.map(({ event }) => nameType(event.type))))}`
  const steps = [...byStep].map(([step, guided]) => ({
    label: isForAll ? 'Next step' : labelFor(guided),
    text: cleanText(step),
  }))
  const shown = steps.slice(0, guidanceLimits.nextSteps)
  if (shown.length === steps.length) return shown
  const left = [...byStep.values()].slice(shown.length).flat()
  const text = `not shown; a message has room for ${shown.length}.`
  return [...shown, { label: labelFor(left), text }]
}

function listTypes(types: readonly string[]): string {
  const shown = types.slice(0, guidanceLimits.types)
  const more = types.length - shown.length
  return more === 0 ? shown.join(', ') : `${shown.join(', ')} and ${more} more`
}

function cleanText(text: string): string {
  return cleanLine(text, Infinity)
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

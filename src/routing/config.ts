/** The routing tree as the configuration file gives it. */
import { z } from 'zod'
import {
  duration,
  type Finding,
  flag,
  guidanceText,
  isSection,
  list,
  name,
  refusal,
  type Refusal,
  type Rule,
  section,
  text,
  textField,
  word,
  wrongKind,
} from '../lib/config/config-fields.ts'
import { pageAddress } from '../lib/config/web-address.ts'
import { type Matcher, matchersField } from './matcher.ts'

/** `shadow`: recorded, never sent. */
export type RouteMode = 'live' | 'shadow'

/** A node of the routing tree, before inheritance. */
export interface RouteConfig {
  /** Unique in the tree. The root is `root`; an unnamed node is its place, e.g. `root.2.1`. */
  name: string
  matchers: Matcher[]
  /** undefined: the parent's, as with the three grouping keys. The root has all four. */
  sinks: string[] | undefined
  /** Names whose values an event shares with its group; empty: one group for the whole route. */
  groupBy: string[] | undefined
  /** 0: every event is a message of its own. */
  groupWaitMs: number | undefined
  groupIntervalMs: number | undefined
  /** Said in its messages. undefined: the parent's, empty: none, as with the next two. */
  note?: string | undefined
  runbookUrl?: string | undefined
  /** Slack's ids of users and groups, `here` or `channel`. */
  mention?: string[] | undefined
  continue: boolean
  /** The node's own setting; every node below a shadow is shadow as well. */
  mode: RouteMode
  /** Neither this nor `onMute` is inherited. */
  muteTimeIntervals: string[]
  onMute: OnMute
  routes: RouteConfig[]
}

/** What happens to a muted event: sent afterwards, or dropped. */
export type OnMute = 'hold' | 'drop'

/** A node as written in the file: its name may be left out. */
interface RouteFile extends z.output<z.ZodObject<typeof childKeys>> {
  routes: RouteFile[]
}

const sinks = list(text('Name of a sink.'), 'Where its events go.', 'write sinks, such as [soc]')

const groupBy = z
  .array(
    text('Name that matchers use.'),
    wrongKind('a list', 'write names, such as [feed, type], or [] for one group'),
  )
  .meta({ description: 'Events with the same values under these names share a message.' })
const groupWait = duration('How long a group collects first; 0s: every event by itself.', '0s')
const groupInterval = duration('The least time between two messages of a group.', '10s')

const maxMentions = 5
const mentionRemedy = 'write ids of Slack, such as [U012AB3CD, S012AB3CD], here or channel'

const mention = z
  .array(
    textField({
      describe: 'The id of a user (U…, W…) or a user group (S…) of Slack, here, or channel.',
      remedy: mentionRemedy,
      examples: ['U012AB3CD', 'S012AB3CD', 'here'],
      parse: readMention,
    }),
    wrongKind('a list', mentionRemedy),
  )
  .refine((ids) => ids.length <= maxMentions, {
    error: `too many\nwrite at most ${maxMentions}`,
    when: ({ value }) => Array.isArray(value),
  })
  .meta({
    description: 'Whom its messages ping in Slack, digests aside; [] for nobody.',
    maxItems: maxMentions,
  })

function readMention(input: string): string | Refusal {
  if (/^(?:[UWS][A-Z0-9]{5,20}|here|channel)$/u.test(input)) return input
  if (/^[CGD][A-Z0-9]{5,20}$/u.test(input)) {
    return refusal('the id of a channel, which cannot be pinged', 'write here or channel instead')
  }
  return refusal('not an id of Slack', `${mentionRemedy}: "Copy member ID" in a profile shows it`)
}

const guidanceKeys = {
  note: guidanceText('A line of yours in its messages, up to 400 characters.').optional(),
  runbook_url: pageAddress('A page about what to do; its messages link to it.').optional(),
  mention: mention.optional(),
}

/** A branch holds branches; the cast breaks the circular type inference. */
function routesField(): z.ZodPrefault<z.ZodType<RouteFile[], RouteFile[]>> {
  const routes = z.array(
    z.lazy(() => childRoute),
    wrongKind('a list of routes', 'write each route as an item that begins with "- "'),
  )
  return (routes as unknown as z.ZodType<RouteFile[], RouteFile[]>)
    .meta({ description: 'Tried in order; the first that matches wins unless it has continue.' })
    .prefault([])
}

const nameRule: Rule = (route) =>
  route['name'] === 'root'
    ? [{ path: ['name'], problem: 'taken by the root of the tree', remedy: 'choose another name' }]
    : []

const onMuteRule: Rule = (route) =>
  route['on_mute'] !== undefined && route['mute_time_intervals'] === undefined
    ? [
        {
          path: ['on_mute'],
          problem: 'there is no mute_time_intervals beside it',
          remedy: 'name the intervals there, or remove the line',
        },
      ]
    : []

const groupByOnce: Rule = (route) => {
  const names: unknown[] = Array.isArray(route['group_by']) ? route['group_by'] : []
  return names.flatMap((given, index) =>
    names.indexOf(given) === index
      ? []
      : [{ path: ['group_by', index], problem: 'written twice', remedy: 'keep one of the two' }],
  )
}

/** Refuses `mode: live` below a shadow, where nothing is ever sent. */
const nothingLiveBelowShadow: Rule = (route) =>
  route['mode'] === 'shadow' ? liveBelow(route['routes'], ['routes']) : []

function liveBelow(routes: unknown, path: Finding['path']): Finding[] {
  const problem = 'a route above it is in mode: shadow, and so is all that stands below'
  const remedy = 'move the route out of that one, or remove the line'
  return (Array.isArray(routes) ? routes : []).flatMap((route: unknown, index) => {
    if (!isSection(route) || route['mode'] === 'shadow') return []
    const here = [...path, index]
    const isLive = route['mode'] === 'live'
    return [
      ...(isLive ? [{ path: [...here, 'mode'], problem, remedy }] : []),
      ...liveBelow(route['routes'], [...here, 'routes']),
    ]
  })
}

const childKeys = {
  name: name('Its name in metrics and explanations. Default: its place.').optional(),
  matchers: matchersField('All of them must match; none: every event.').optional(),
  sinks: sinks.optional(),
  group_by: groupBy.optional(),
  group_wait: groupWait.optional(),
  group_interval: groupInterval.optional(),
  ...guidanceKeys,
  continue: flag('Try the following siblings too.').optional(),
  mode: word(['live', 'shadow'], 'shadow: recorded, never sent, stops no sibling.').optional(),
  mute_time_intervals: list(
    text('Name of a time interval.'),
    'While one of them is active, nothing is sent.',
    'write time intervals, such as [night]',
  ).optional(),
  on_mute: word(['hold', 'drop'], 'Send afterwards, or not at all.').optional(),
}

const childRoute: z.ZodType<RouteFile> = section(
  { ...childKeys, routes: routesField() },
  {
    describe: 'A branch of the routing tree.',
    id: 'route',
    rules: [nameRule, onMuteRule, groupByOnce, nothingLiveBelowShadow],
  },
)

/** The file's `route`: the whole tree. */
export const routeConfig = section(
  {
    sinks,
    group_by: groupBy.prefault(['feed', 'type']),
    group_wait: groupWait.prefault('10s'),
    group_interval: groupInterval.prefault('5m'),
    ...guidanceKeys,
    routes: routesField(),
  },
  {
    describe: 'The routing tree; its root takes every event that no branch takes.',
    rules: [groupByOnce],
  },
).transform((file) => routeAt(file, 'root'))

/** `place` is the node's position: `root.2.1` is the first branch of the second. */
function routeAt(file: RouteFile, place: string): RouteConfig {
  return {
    name: file.name ?? place,
    matchers: file.matchers ?? [],
    sinks: file.sinks,
    groupBy: file.group_by,
    groupWaitMs: file.group_wait,
    groupIntervalMs: file.group_interval,
    note: file.note,
    runbookUrl: file.runbook_url,
    mention: file.mention,
    continue: file.continue ?? false,
    mode: file.mode ?? 'live',
    muteTimeIntervals: file.mute_time_intervals ?? [],
    onMute: file.on_mute ?? 'hold',
    routes: file.routes.map((route, index) => routeAt(route, `${place}.${index + 1}`)),
  }
}

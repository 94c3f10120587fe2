import { z } from 'zod'
import { flag, list, messageFor, name, text, wrongKind } from '../runtime/config-fields.ts'
import { laterKeys, laterMark, section, type Rule } from '../runtime/config-section.ts'
import { MatcherError } from './matcher-error.ts'
import { parseMatcher, type Matcher } from './matcher.ts'

/** A node of the routing tree, inheritance not yet applied. */
export interface RouteConfig {
  /** Unique in the tree; the root is `root`; unnamed nodes get their place, e.g. `root.2.1`. */
  name: string
  matchers: Matcher[]
  /** undefined: the parent's. */
  sinks: string[] | undefined
  continue: boolean
  routes: RouteConfig[]
}

/** A node as the file has it: its name may be left out. */
interface RouteFile {
  name?: string | undefined
  matchers?: Matcher[] | undefined
  sinks?: string[] | undefined
  continue?: boolean | undefined
  routes: RouteFile[]
}

const matcherRemedy = `write a name, an operator and a value, such as 'severity>=high'`

const matcher = z
  .string(wrongKind('a text', matcherRemedy))
  .meta({ examples: ['severity>=high', 'type="paste"'] })
  .transform((input, context): Matcher => {
    try {
      return parseMatcher(input)
    } catch (error) {
      if (!(error instanceof MatcherError)) throw error
      context.addIssue({ code: 'custom', message: messageFor(error) })
      return z.NEVER
    }
  })
  .meta({ description: 'name op value' })

const sinks = list(text('Name of a sink.'), 'Where its events go.', 'write sinks, such as [soc]')

const laterRouteKeys = laterKeys({
  group_by: 'every event is a message of its own, but for the batch of a webhook',
  group_wait: 'every event is a message of its own, but for the batch of a webhook',
  group_interval: 'every event is a message of its own, but for the batch of a webhook',
  stage: 'every route sends',
  mute_time_intervals: 'a route sends at any time',
  on_mute: 'a route sends at any time',
})

/** The cast ends the circle of inferred types: a branch holds branches. */
function routesField(): z.ZodPrefault<z.ZodType<RouteFile[], RouteFile[]>> {
  const routes = z.array(
    z.lazy(() => childRoute),
    wrongKind('a list of routes', 'write each route as an item that begins with "- "'),
  )
  return (routes as unknown as z.ZodType<RouteFile[], RouteFile[]>)
    .meta({ description: 'Tried in order; the first that matches wins unless it has continue.' })
    .prefault([])
}

const givenName: Rule = (route) =>
  route['name'] === 'root'
    ? [{ path: ['name'], problem: 'taken by the root of the tree', remedy: 'choose another name' }]
    : []

const childRoute: z.ZodType<RouteFile> = section(
  {
    name: name('Its name in metrics and explanations. Default: its place.').optional(),
    matchers: z
      .array(matcher, wrongKind('a list', "write a list, such as ['severity>=high']"))
      .meta({ description: 'All of them must match; none: every event.' })
      .optional(),
    sinks: sinks.optional(),
    continue: flag('Try the following siblings too.').optional(),
    routes: routesField(),
    ...laterRouteKeys,
  },
  { describe: 'A branch of the routing tree.', id: 'route', rules: [givenName] },
)

const catchesAll = 'the root of the tree takes every event that no branch takes'

const rootOnly: Rule = (root) =>
  ['name', 'matchers', 'continue']
    .filter((key) => root[key] !== undefined)
    .map((key) => ({
      path: [key],
      problem: `not on the root: ${catchesAll}`,
      remedy: 'move it to an item of routes, or remove the line',
    }))

const onlyOnBranches = z.unknown().optional().meta(laterMark)

/** The whole tree; the file's `route`. */
export const routeConfig = section(
  {
    sinks,
    routes: routesField(),
    name: onlyOnBranches,
    matchers: onlyOnBranches,
    continue: onlyOnBranches,
    ...laterRouteKeys,
  },
  { describe: `The routing tree; ${catchesAll}.`, rules: [rootOnly] },
).transform(({ sinks: rootSinks, routes }) => {
  return routeAt({ sinks: rootSinks, routes }, 'root')
})

/** `place` is where the node stands: `root.2.1` is the first branch of the second. */
function routeAt(file: RouteFile, place: string): RouteConfig {
  return {
    name: file.name ?? place,
    matchers: file.matchers ?? [],
    sinks: file.sinks,
    continue: file.continue ?? false,
    routes: file.routes.map((route, index) => routeAt(route, `${place}.${index + 1}`)),
  }
}

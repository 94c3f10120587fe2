/**
 * What the file says about events and what no event of its feeds can ever meet: matchers on words that do not
 * exist, routes that nothing reaches, silences, mutes and rules of inhibition that never act. Warnings, since
 * feeds come and go and the service's own words grow.
 */
import { severities, severityRank } from '../event.ts'
import type { Finding } from '../lib/config-fields.ts'
import { formatList, findNearest, suggestion } from '../lib/errors.ts'
import { describedTypes } from '../messages/families.ts'
import type { RouteConfig } from '../routing/config.ts'
import { eventNames, type Matcher, unusualSeverity } from '../routing/matcher.ts'
import type { Config } from './config.ts'
import { type Place, printableKey } from './parse-file.ts'

export function deadRuleWarnings(config: Config, nowMs: number): Finding[] {
  const { route, silences, inhibitRules } = config
  const known = collectKnown(config)
  return [
    ...routeWarnings(known, route, { path: ['route'], met: known.anyEvent }),
    ...silences.flatMap((silence, index) => silenceWarnings(known, { silence, index }, nowMs)),
    ...inhibitRules.flatMap((rule, index) => inhibitWarnings(known, rule, index)),
    ...endedMutes(config, nowMs),
  ]
}

/** What the file has, looked up once: rules and feeds may be thousands each. */
interface KnownWords {
  anyEvent: MetMatchers
  /** What may stand for a name in a matcher; undefined: any word may come. */
  words: (name: string) => readonly string[] | undefined
}

function collectKnown(config: Config): KnownWords {
  const { feeds } = config
  const wordsByName = new Map<string, readonly string[] | undefined>()
  return {
    anyEvent: {
      matchers: [],
      feeds,
      byAccount: Map.groupBy(feeds, ({ account }) => account),
    },
    words(name) {
      if (!wordsByName.has(name)) wordsByName.set(name, knownWords(config, name))
      return wordsByName.get(name)
    },
  }
}

/** Matchers that an event has met, and the feeds from which it may come. */
interface MetMatchers {
  matchers: readonly Matcher[]
  feeds: readonly Feed[]
  /** The same feeds by their account, before any matcher was met. */
  byAccount?: ReadonlyMap<string, readonly Feed[]>
}

/** All of `before` and these as well. */
function addMatchers(before: MetMatchers, matchers: readonly Matcher[]): MetMatchers {
  const account = namedAccount(matchers)
  const isOne = account !== undefined && before.byAccount !== undefined
  const feeds = isOne ? before.byAccount?.get(account) : before.feeds
  return {
    matchers: [...before.matchers, ...matchers],
    feeds: (feeds ?? []).filter((feed) => meetsFeed(feed, matchers)),
  }
}

/** The account that matchers name, if they name one. */
function namedAccount(matchers: readonly Matcher[]): string | undefined {
  return matchers.find(({ name, operator }) => name === 'account' && operator === '=')?.value
}

interface PlacedNode {
  path: Place
  /** What an event has met that comes by: the matchers of the node and of all above it. */
  met: MetMatchers
}

function routeWarnings(known: KnownWords, node: RouteConfig, { path, met }: PlacedNode): Finding[] {
  const siblings = Map.groupBy(node.routes.entries(), ([, route]) => namedAccount(route.matchers))
  return node.routes.flatMap((route, index) => {
    const place = [...path, 'routes', index]
    const metHere = addMatchers(met, route.matchers)
    const words = wordWarnings(known, route.matchers, [...place, 'matchers'])
    const dead = words.length > 0 ? words : findUnmeetable(metHere, place)
    const placed = { path: place, met: metHere }
    const takers = [undefined, metHere.feeds[0]?.account]
      .flatMap((account) => siblings.get(account) ?? [])
      .filter(([before]) => before < index)
      .toSorted(([left], [right]) => left - right)
    const otherWarnings = [...findShadowing(takers, placed), ...findIdleMute(route, placed)]
    // what stands below a dead route is judged by itself
    const below = { path: place, met: dead.length > 0 ? known.anyEvent : metHere }
    return [...(dead.length > 0 ? dead : otherWarnings), ...routeWarnings(known, route, below)]
  })
}

/** By earlier routes: of those that name an account, only that of the events can take them all. */
function findShadowing(earlier: [number, RouteConfig][], { path, met }: PlacedNode): Finding[] {
  const [, taker] = earlier.find(([, route]) => !route.continue && takesAll(route, met)) ?? []
  if (taker === undefined) return []
  const problem = `never matches: the route ${taker.name} before it takes all of its events`
  return [{ path, problem, remedy: `give ${taker.name} continue: true, or move it` }]
}

/** A mute is not inherited, and holds for what no route below takes. */
function findIdleMute(route: RouteConfig, { path, met }: PlacedNode): Finding[] {
  const taker = route.routes.find((child) => takesAll(child, met))
  if (route.muteTimeIntervals.length === 0 || taker === undefined) return []
  const problem = `mutes nothing: the route ${taker.name} below takes all of its events`
  const remedy = `move the line to ${taker.name}: a mute is not inherited`
  return [{ path: [...path, 'mute_time_intervals'], problem, remedy }]
}

/** Whether a route takes whatever has met these. */
function takesAll(route: RouteConfig, met: MetMatchers): boolean {
  return route.stage === 'live' && route.matchers.every((matcher) => isImplied(matcher, met))
}

function silenceWarnings(
  known: KnownWords,
  { silence, index }: { silence: Config['silences'][number]; index: number },
  nowMs: number,
): Finding[] {
  const path = ['silences', index]
  if (silence.endsAtMs <= nowMs) {
    const ended = new Date(silence.endsAtMs).toISOString()
    const remedy = 'remove it, or write a later time while it is still needed'
    return [{ path: [...path, 'until'], problem: `silences nothing: it ended ${ended}`, remedy }]
  }
  const { matchers, maxSeverity } = silence
  const words = wordWarnings(known, matchers, [...path, 'matchers'])
  if (words.length > 0) return words
  const dead = findUnmeetable(addMatchers(known.anyEvent, matchers), path)
  if (dead.length > 0) return dead
  const silenced = severities.slice(0, severityRank(maxSeverity))
  if (silenced.some((word) => allAccept('severity', matchers, [word]))) return []
  const problem = `silences nothing: its matchers want more than its severity, ${maxSeverity}`
  return [
    { path: [...path, 'severity'], problem, remedy: 'raise severity, or correct the matchers' },
  ]
}

function inhibitWarnings(
  known: KnownWords,
  rule: Config['inhibitRules'][number],
  index: number,
): Finding[] {
  const path = ['inhibit_rules', index]
  const sides = [
    { key: 'source_matchers', matchers: rule.sourceMatchers },
    { key: 'target_matchers', matchers: rule.targetMatchers },
  ]
  const dead = sides.flatMap(({ key, matchers }) => {
    const words = wordWarnings(known, matchers, [...path, key])
    return words.length > 0
      ? words
      : findUnmeetable(addMatchers(known.anyEvent, matchers), [...path, key])
  })
  const target = addMatchers(known.anyEvent, rule.targetMatchers)
  if (dead.length > 0 || !rule.sourceMatchers.every((matcher) => isImplied(matcher, target)))
    return dead
  const problem =
    'keeps back nothing: each of its targets is a source too, and a source is never kept back'
  return [{ path, problem, remedy: 'narrow source_matchers, so that targets are left' }]
}

/** Time intervals that named years bound, all of them past. */
function endedMutes({ timeIntervals }: Config, nowMs: number): Finding[] {
  const thisYear = new Date(nowMs).getUTCFullYear()
  return Object.entries(timeIntervals).flatMap(([name, intervals]) => {
    const isOver = intervals.every(
      ({ years }) => years?.every(({ end }) => end < thisYear - 1) ?? false, // of any time zone
    )
    if (!isOver || intervals.length === 0) return []
    const problem = 'mutes nothing any more: its years are past'
    return [{ path: ['time_intervals', name], problem, remedy: 'write later years, or remove it' }]
  })
}

/** Each matcher by itself: a word that is none of the file's, or nearly one of the service's. */
function wordWarnings(known: KnownWords, matchers: readonly Matcher[], path: Place): Finding[] {
  return matchers.flatMap((matcher, index) => {
    const unusual = unusualSeverity(matcher)
    if (unusual) return [{ path: [...path, index], ...unusual }]
    const possible = known.words(matcher.name)
    if (!possible) return []
    const unknown = matcherWords(matcher).find((word) => isUnknown(word, matcher.name, possible))
    const place = [...path, index]
    if (unknown !== undefined) return [{ path: place, ...wrongWord(matcher, unknown, possible) }]
    const isPattern = matcher.operator === '=~' && matcher.name !== 'type'
    if (!isPattern || possible.some((word) => matcher.matches([word]))) return []
    const words = possible.filter((word) => word !== '').map(printableKey)
    const problem = `never matches: no ${matcher.name} of this file fits`
    return [
      { path: place, problem, remedy: `correct the pattern; there are: ${formatList(words)}` },
    ]
  })
}

/** undefined: any word may come. */
function knownWords({ accounts, feeds }: Config, name: string): readonly string[] | undefined {
  switch (name) {
    case 'account':
      return accounts.map((account) => account.name)
    case 'feed':
      return feeds.map((feed) => feed.name)
    case 'kind':
      return kinds
    case 'type':
      return describedTypes
    default:
      if ((eventNames as readonly string[]).includes(name)) return undefined
      return [...new Set(feeds.map(({ labels }) => labelValue(labels, name)))]
  }
}

const kinds = ['event', 'credential', 'report']

/** As matchers see it: a feed without the label has the empty text. */
function labelValue(labels: Readonly<Record<string, string>>, name: string): string {
  return (Object.hasOwn(labels, name) ? labels[name] : undefined) ?? ''
}

/** The words of a comparison, or of a pattern that is nothing but words: `brand|domains`. */
function matcherWords({ operator, value }: Matcher): string[] {
  if (operator === '=' || operator === '!=') return [value]
  const isWords = (operator === '=~' || operator === '!~') && /^[\w-]+(\|[\w-]+)*$/.test(value)
  return isWords ? value.split('|') : []
}

/** New types come without notice (`driller_…`, `domain_…`): one is doubted only where it is a slip of the pen. */
function isUnknown(word: string, name: string, known: readonly string[]): boolean {
  if (known.includes(word)) return false
  return name !== 'type' || findNearest(word, known, maxWrongLetters) !== undefined
}

/** Two that are swapped count as two. */
const maxWrongLetters = 2

function wrongWord(
  { name, operator, value }: Matcher,
  word: string,
  known: readonly string[],
): Pick<Finding, 'problem' | 'remedy'> {
  const isPart = word !== value
  const effect = operator.startsWith('!') ? 'excludes nothing' : 'never matches'
  const problem = `${isPart ? `"${word}" in it ` : ''}${effect}: ${describeAbsence(name, word)}`
  const candidates = known.filter((one) => one !== '').map(printableKey)
  return { problem, remedy: suggestion(word, candidates, 'there are') }
}

function describeAbsence(name: string, word: string): string {
  const isOwn = (eventNames as readonly string[]).includes(name)
  return isOwn ? `there is no ${name} "${word}"` : `no feed has the label ${name}: "${word}"`
}

/** All matchers together: each may be met, and yet no event meets all. */
function findUnmeetable({ matchers, feeds }: MetMatchers, path: Place): Finding[] {
  const isMet =
    feeds.length > 0 &&
    ['severity', 'kind', 'type', 'source'].every((name) => {
      const words = possibleWords(name, matchers)
      return words === undefined || words.some((word) => allAccept(name, matchers, [word]))
    })
  if (isMet || matchers.length === 0) return []
  const problem = 'never matches: no event can meet all of its matchers, and of those above it'
  return [{ path, problem, remedy: 'correct the matchers, or remove it' }]
}

type Feed = Config['feeds'][number]

const eventOnlyNames = new Set<string>(
  eventNames.filter((name) => name !== 'account' && name !== 'feed'),
)

function isFeedMatcher({ name }: Matcher): boolean {
  return !eventOnlyNames.has(name)
}

/** By what all events of a feed have in common: its name, its account, its labels. */
function meetsFeed({ name, account, labels }: Feed, matchers: readonly Matcher[]): boolean {
  const fields: Record<string, string> = { feed: name, account }
  return matchers
    .filter(isFeedMatcher)
    .every((matcher) => matcher.matches([fields[matcher.name] ?? labelValue(labels, matcher.name)]))
}

/**
 * Of what an event has exactly one of. `source`, `type` and, since the service may have words of its own,
 * `severity` are open: known only where they are compared. undefined: any word may come.
 */
function possibleWords(name: string, matchers: readonly Matcher[]): string[] | undefined {
  if (name === 'kind') return kinds
  const ofName = matchers.filter((matcher) => matcher.name === name)
  const named = ofName.filter(({ operator }) => operator === '=').map(({ value }) => value)
  if (name !== 'severity') return named.length > 0 ? named : undefined
  const patterns = ofName.filter(({ operator }) => operator === '=~')
  if (patterns.some((pattern) => matcherWords(pattern).length === 0)) return undefined
  return [...severities, anotherWord, ...named, ...patterns.flatMap(matcherWords)]
}

/** Stands for a severity that this version does not know. */
const anotherWord = '\0'

function allAccept(name: string, matchers: readonly Matcher[], values: readonly string[]): boolean {
  return matchers.every((matcher) => matcher.name !== name || matcher.matches(values))
}

/** Whether whatever meets `given` meets the matcher too. In doubt it does not. */
function isImplied(matcher: Matcher, { matchers: given, feeds }: MetMatchers): boolean {
  const { name } = matcher
  if (given.some((one) => isSameMatcher(one, matcher))) return true
  if (isFeedMatcher(matcher))
    return feeds.length > 0 && feeds.every((feed) => meetsFeed(feed, [matcher]))
  if (name === 'identifier' || name === 'tag') return isImpliedByAny(matcher, given)
  const words = possibleWords(name, given)?.filter((word) => allAccept(name, given, [word])) ?? []
  return words.length > 0 && words.every((word) => matcher.matches([word]))
}

/** An event has several: that one of them fits is known, that none does is not. */
function isImpliedByAny(matcher: Matcher, given: readonly Matcher[]): boolean {
  if (matcher.operator !== '=' && matcher.operator !== '=~') return false
  return given.some(
    ({ name, operator, value }) =>
      name === matcher.name && operator === '=' && matcher.matches([value]),
  )
}

function isSameMatcher(one: Matcher, other: Matcher): boolean {
  return one.name === other.name && one.operator === other.operator && one.value === other.value
}

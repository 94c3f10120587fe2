/**
 * Finds rules that no event of the file's feeds can ever meet: matchers on words that do not exist,
 * unreachable routes, and silences, mutes and inhibition rules that never act. They are warnings,
 * because feeds come and go and upstream adds words of its own.
 */
import { severities, severityRank } from '../event.ts'
import { closedWords, describeYield, type FeedYield } from '../feed-types/feed-config.ts'
import type { Finding } from '../lib/config-fields.ts'
import { formatList, findNearest, suggestion } from '../lib/errors.ts'
import { describedTypes } from '../messages/families.ts'
import type { RouteConfig } from '../routing/config.ts'
import { eventNames, type Matcher, unusualSeverity } from '../routing/matcher.ts'
import { isFeedMatcher, meetsFeed, namedAccount } from '../routing/reach.ts'
import type { Silence } from '../routing/silences.ts'
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

/** Why a silence that is about to be made would silence nothing. */
export function silenceRemarks(config: Config, silence: Silence, nowMs: number): Finding[] {
  return silenceWarnings(collectKnown(config), { silence, index: 0 }, nowMs)
}

/** What the file defines, looked up once: rules and feeds may be thousands each. */
interface KnownWords {
  anyEvent: MetMatchers
  /** What each feed gives; feeds that give the same share one. */
  yields: ReadonlyMap<Feed, FeedYield>
  /** The possible values under a name in a matcher; undefined: any word. */
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
    yields: collectYields(feeds),
    words(name) {
      if (!wordsByName.has(name)) wordsByName.set(name, knownWords(config, name))
      return wordsByName.get(name)
    },
  }
}

type Feed = Config['feeds'][number]

function collectYields(feeds: readonly Feed[]): ReadonlyMap<Feed, FeedYield> {
  const shared = new Map<string, FeedYield>()
  return new Map(
    feeds.map((feed) => {
      const given = describeYield(feed)
      const key = JSON.stringify(given)
      if (!shared.has(key)) shared.set(key, given)
      return [feed, shared.get(key) ?? given]
    }),
  )
}

/** Matchers that an event has met, and the feeds from which it may come. */
interface MetMatchers {
  matchers: readonly Matcher[]
  feeds: readonly Feed[]
  /** The same feeds by their account, before any matcher was met. */
  byAccount?: ReadonlyMap<string, readonly Feed[]>
}

/** Adds matchers to those already met, and narrows the feeds. */
function addMatchers(before: MetMatchers, matchers: readonly Matcher[]): MetMatchers {
  const account = namedAccount(matchers)
  const isOne = account !== undefined && before.byAccount !== undefined
  const feeds = isOne ? before.byAccount?.get(account) : before.feeds
  return {
    matchers: [...before.matchers, ...matchers],
    feeds: (feeds ?? []).filter((feed) => meetsFeed(feed, matchers)),
  }
}

interface PlacedNode {
  path: Place
  /** What events at this node have met: the matchers of the node and of all above it. */
  met: MetMatchers
}

function routeWarnings(known: KnownWords, node: RouteConfig, { path, met }: PlacedNode): Finding[] {
  const siblings = Map.groupBy(node.routes.entries(), ([, route]) => namedAccount(route.matchers))
  return node.routes.flatMap((route, index) => {
    const place = [...path, 'routes', index]
    const metHere = addMatchers(met, route.matchers)
    const words = wordWarnings(known, route.matchers, [...place, 'matchers'])
    const own = { matchers: route.matchers, path: [...place, 'matchers'] }
    const dead = words.length > 0 ? words : findUnmeetable(known, metHere, { path: place, own })
    const placed = { path: place, met: metHere }
    const takers = [undefined, metHere.feeds[0]?.account]
      .flatMap((account) => siblings.get(account) ?? [])
      .filter(([before]) => before < index)
      .toSorted(([left], [right]) => left - right)
    const otherWarnings = [...findShadowing(takers, placed), ...findIdleMute(route, placed)]
    // Routes below a dead route are checked on their own.
    const below = { path: place, met: dead.length > 0 ? known.anyEvent : metHere }
    return [...(dead.length > 0 ? dead : otherWarnings), ...routeWarnings(known, route, below)]
  })
}

/**
 * Checks earlier routes. Of those that name an account, only the events' own account can take all
 * of them.
 */
function findShadowing(earlier: [number, RouteConfig][], { path, met }: PlacedNode): Finding[] {
  const [, taker] = earlier.find(([, route]) => !route.continue && takesAll(route, met)) ?? []
  if (taker === undefined) return []
  const problem = `never matches: the route ${taker.name} before it takes all of its events`
  return [{ path, problem, remedy: `give ${taker.name} continue: true, or move it` }]
}

/** A mute is not inherited: it applies to what no route below takes. */
function findIdleMute(route: RouteConfig, { path, met }: PlacedNode): Finding[] {
  const taker = route.routes.find((child) => takesAll(child, met))
  if (route.muteTimeIntervals.length === 0 || taker === undefined) return []
  const problem = `mutes nothing: the route ${taker.name} below takes all of its events`
  const remedy = `move the line to ${taker.name}: a mute is not inherited`
  return [{ path: [...path, 'mute_time_intervals'], problem, remedy }]
}

/** Whether a route takes every event that has met `met`. */
function takesAll(route: RouteConfig, met: MetMatchers): boolean {
  return route.mode === 'live' && route.matchers.every((matcher) => isImplied(matcher, met))
}

function silenceWarnings(
  known: KnownWords,
  { silence, index }: { silence: Silence; index: number },
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
  const met = addMatchers(known.anyEvent, matchers)
  const own = { matchers, path: [...path, 'matchers'] }
  const dead = findUnmeetable(known, met, { path, own })
  if (dead.length > 0) return dead
  const given = listYields(known, met).flatMap((one) => givenWords('severity', one) ?? severities)
  const silenced = severities.slice(0, severityRank(maxSeverity))
  if (silenced.some((word) => given.includes(word) && allAccept('severity', matchers, [word])))
    return []
  const problem = `silences nothing: its matchers want more than its max_severity, ${maxSeverity}`
  return [
    {
      path: [...path, 'max_severity'],
      problem,
      remedy: 'raise max_severity, or correct the matchers',
    },
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
    const place = [...path, key]
    const words = wordWarnings(known, matchers, place)
    if (words.length > 0) return words
    const met = addMatchers(known.anyEvent, matchers)
    return findUnmeetable(known, met, { path: place, own: { matchers, path: place } })
  })
  const target = addMatchers(known.anyEvent, rule.targetMatchers)
  if (dead.length > 0 || !rule.sourceMatchers.every((matcher) => isImplied(matcher, target)))
    return dead
  const problem =
    'suppresses nothing: each of its targets is a source too, and a source is never suppressed'
  return [{ path, problem, remedy: 'narrow source_matchers, so that targets are left' }]
}

/** Finds time intervals whose named years are all past. */
function endedMutes({ timeIntervals }: Config, nowMs: number): Finding[] {
  const thisYear = new Date(nowMs).getUTCFullYear()
  return Object.entries(timeIntervals).flatMap(([name, intervals]) => {
    const isOver = intervals.every(
      ({ years }) => years?.every(({ end }) => end < thisYear - 1) ?? false, // in every time zone
    )
    if (!isOver || intervals.length === 0) return []
    const problem = 'mutes nothing any more: its years are past'
    return [{ path: ['time_intervals', name], problem, remedy: 'write later years, or remove it' }]
  })
}

/** Checks each matcher alone, for a word that the file does not define or a probable typo. */
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

/** Returns undefined if any word may occur. */
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

/** New types appear unannounced (`driller_…`, `domain_…`): only likely typos are doubted. */
function isUnknown(word: string, name: string, known: readonly string[]): boolean {
  if (known.includes(word)) return false
  return name !== 'type' || findNearest(word, known, maxWrongLetters) !== undefined
}

/** Two swapped letters count as two. */
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

interface CheckedRule {
  path: Place
  /** Its own matchers, which may be to blame, and where they stand. */
  own: { matchers: readonly Matcher[]; path: Place }
}

/** Checks all matchers together: each may be met, and yet no event of any feed meets all. */
function findUnmeetable(
  known: KnownWords,
  met: MetMatchers,
  { path, own }: CheckedRule,
): Finding[] {
  const { matchers } = met
  const yields = listYields(known, met)
  if (matchers.length === 0 || yields.some((given) => canMeet(matchers, given))) return []
  const index = own.matchers.findIndex((one) => !yields.some((given) => canMeet([one], given)))
  const culprit = own.matchers[index]
  if (culprit && yields.length > 0 && canMeet(matchers, anyYield)) {
    return [{ path: [...own.path, index], ...notGiven(known, met.feeds, culprit) }]
  }
  const problem = 'never matches: no event can meet all of its matchers, and of those above it'
  return [{ path, problem, remedy: 'correct the matchers, or remove it' }]
}

const anyYield: FeedYield = { fixed: {}, asked: {} }

/** What the feeds give, each once. */
function listYields({ yields }: KnownWords, { feeds }: MetMatchers): FeedYield[] {
  return [...new Set(feeds.map((feed) => yields.get(feed) ?? anyYield))]
}

function givenWords(name: string, { fixed, asked }: FeedYield): readonly string[] | undefined {
  return fixed[name] ?? asked[name]
}

/** Names the feeds that a rule may get events of, and what these have instead. */
function notGiven(
  { anyEvent, yields }: KnownWords,
  feeds: readonly Feed[],
  culprit: Matcher,
): Pick<Finding, 'problem' | 'remedy'> {
  const { name } = culprit
  const [first] = feeds
  const who =
    feeds.length === 1 && first ? `feed ${first.name} gives` : `${feeds.length} feeds give`
  const all = feeds.flatMap((feed) => givenWords(name, yields.get(feed) ?? anyYield) ?? [])
  const words = formatList([...new Set(all)].filter((word) => word !== ''))
  const givers = anyEvent.feeds.filter((feed) => canMeet([culprit], yields.get(feed) ?? anyYield))
  return {
    problem: `never matches: ${who} ${words === '' ? `no ${name}` : `${name} ${words} alone`}`,
    remedy:
      givers.length === 0
        ? 'correct the matcher, or remove it'
        : `it is given by: ${formatList(givers.map((feed) => feed.name))}; name one of them, or correct the matcher`,
  }
}

const eventFields = ['severity', 'kind', 'type', 'source', 'tag', 'identifier']

/** Whether an event of a feed may meet all matchers. In doubt the answer is true. */
function canMeet(matchers: readonly Matcher[], given: FeedYield): boolean {
  return eventFields.every((name) => {
    const words = wordsOfFeed(name, matchers, given)
    return words === undefined || words.some((word) => allAccept(name, matchers, [word]))
  })
}

function wordsOfFeed(
  name: string,
  matchers: readonly Matcher[],
  { fixed, asked }: FeedYield,
): readonly string[] | undefined {
  if (fixed[name]) return fixed[name]
  const words = asked[name]
  if (!words)
    return name === 'tag' || name === 'identifier' ? undefined : possibleWords(name, matchers)
  const ofName = matchers.filter((matcher) => matcher.name === name)
  const positive = ofName.filter(({ operator }) => operator === '=' || operator === '=~')
  if (positive.some((matcher) => matcherWords(matcher).length === 0)) return undefined
  const isRanked = ofName.some(({ operator }) => /^[<>]/.test(operator))
  const named = positive.flatMap(matcherWords)
  const others = named.filter((word) => !closedWords[name]?.includes(word))
  return [...words, ...others, ...(isRanked ? [] : [anotherWord])]
}

/**
 * Possible values of a field that an event has exactly once. `source`, `type` and `severity` are
 * open, because upstream may use words of its own: they are known only if they are compared.
 * undefined: any word.
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

/** Stands for a word that this version does not know. */
const anotherWord = '\0'

function allAccept(name: string, matchers: readonly Matcher[], values: readonly string[]): boolean {
  return matchers.every((matcher) => matcher.name !== name || matcher.matches(values))
}

/** Whether every event that meets `given` meets the matcher too. In doubt the answer is false. */
function isImplied(matcher: Matcher, { matchers: given, feeds }: MetMatchers): boolean {
  const { name } = matcher
  if (given.some((one) => isSameMatcher(one, matcher))) return true
  if (isFeedMatcher(matcher))
    return feeds.length > 0 && feeds.every((feed) => meetsFeed(feed, [matcher]))
  if (name === 'identifier' || name === 'tag') return isImpliedByAny(matcher, given)
  const words = possibleWords(name, given)?.filter((word) => allAccept(name, given, [word])) ?? []
  return words.length > 0 && words.every((word) => matcher.matches([word]))
}

/** An event has several values here: it is known that one of them fits, never that none does. */
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

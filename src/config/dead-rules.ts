/**
 * Finds rules that cannot act: matchers on words that do not exist, and routes that an earlier one
 * leaves nothing. They are warnings, because feeds come and go and upstream adds words of its own.
 */
import { noSeverity, severities } from '../event.ts'
import type { Finding } from '../lib/config/config-fields.ts'
import { findNearest, suggestion } from '../lib/errors.ts'
import { describedTypes } from '../messages/types/families.ts'
import type { RouteConfig } from '../routing/config.ts'
import { eventNames, type Matcher } from '../routing/matcher.ts'
import type { Silence } from '../routing/silences.ts'
import type { Config } from './config.ts'
import { type Place, printableKey } from './parse-file.ts'

export function deadRuleWarnings(config: Config): Finding[] {
  const { route, silences, inhibitRules } = config
  const known = collectWords(config)
  return [
    ...routeWarnings(known, route, ['route']),
    ...silences.flatMap(({ matchers }, index) =>
      wordWarnings(known, matchers, ['silences', index, 'matchers']),
    ),
    ...inhibitRules.flatMap(({ sourceMatchers, targetMatchers }, index) => [
      ...wordWarnings(known, sourceMatchers, ['inhibit_rules', index, 'source_matchers']),
      ...wordWarnings(known, targetMatchers, ['inhibit_rules', index, 'target_matchers']),
    ]),
  ]
}

/** Why a silence that is about to be made would silence nothing. */
export function silenceRemarks(config: Config, { matchers }: Silence): Finding[] {
  return wordWarnings(collectWords(config), matchers, ['matchers'])
}

/** The possible values under a name in a matcher; undefined: any word. */
type KnownWords = (name: string) => readonly string[] | undefined

/** Looks each name up once: rules and feeds may be thousands each. */
function collectWords(config: Config): KnownWords {
  const wordsByName = new Map<string, readonly string[] | undefined>()
  return (name) => {
    if (!wordsByName.has(name)) wordsByName.set(name, knownWords(config, name))
    return wordsByName.get(name)
  }
}

function routeWarnings(known: KnownWords, node: RouteConfig, path: Place): Finding[] {
  const takers = new Map<string, RouteConfig>()
  return node.routes.flatMap((route, index) => {
    const place = [...path, 'routes', index]
    const names = matcherNames(route)
    const taker = takers.get('') ?? takers.get(names)
    if (!route.continue && route.mode === 'live' && !takers.has(names)) takers.set(names, route)
    return [
      ...wordWarnings(known, route.matchers, [...place, 'matchers']),
      ...(taker ? [shadowedBy(taker, place)] : []),
      ...routeWarnings(known, route, place),
    ]
  })
}

/** The same for routes with the same matchers, in whatever order; '' for one that takes all. */
function matcherNames({ matchers }: RouteConfig): string {
  const names = matchers.map(({ name, operator, value }) => `${name}${operator}${value}`)
  return names.toSorted().join('\n')
}

function shadowedBy(taker: RouteConfig, path: Place): Finding {
  const problem = `never matches: the route ${taker.name} before it takes all of its events`
  return { path, problem, remedy: `give ${taker.name} continue: true, or move it` }
}

/** Checks each matcher alone, for a word that the file does not define or a probable typo. */
function wordWarnings(known: KnownWords, matchers: readonly Matcher[], path: Place): Finding[] {
  return matchers.flatMap((matcher, index) => {
    const possible = known(matcher.name)
    if (!possible) return []
    const unknown = matcherWords(matcher).find((word) => isUnknown(word, matcher.name, possible))
    const place = [...path, index]
    return unknown === undefined ? [] : [{ path: place, ...wrongWord(matcher, unknown, possible) }]
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
    case 'severity':
      return [...severities, noSeverity]
    default:
      if ((eventNames as readonly string[]).includes(name)) return undefined
      return [...new Set(feeds.map(({ labels }) => labelValue(labels, name)))]
  }
}

const kinds = ['event', 'credential']

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

/** New types and severities appear unannounced: only likely typos are doubted. */
function isUnknown(word: string, name: string, known: readonly string[]): boolean {
  if (known.includes(word)) return false
  const isOpen = name === 'type' || name === 'severity'
  return !isOpen || findNearest(word, known, maxWrongLetters) !== undefined
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

/** Every view of the page with its answer of the API, as visitors ask for them. */
import type { Random } from '../../src/sandbox/options.ts'
import type { Known } from './page-ledger.ts'

export interface PageView {
  name: string
  /** A path with its query, drawn anew for each request. */
  draw: () => string
}

export interface Visit {
  known: Known
  random: Random
  sinks: readonly string[]
  silences: readonly string[]
  /** Of long lists: where further pages begin. */
  pages: { told: readonly string[]; notTold: readonly string[] }
}

const periods = ['1d', '7d', '30d', '90d']
const words = ['combolist', 'market vpn', 'desktop', 'no such words anywhere']

export function pageViews(visit: Visit): PageView[] {
  return [...listings(visit), ...others(visit)]
}

function listings({ random, sinks, silences, pages }: Visit): PageView[] {
  const told = (filter: () => object) => () =>
    addressOf('/told', { since: random.pick(periods), ...filter() })
  const kept = (filter: () => object) => () =>
    addressOf('/not-told', { since: random.pick(periods), ...filter() })
  const views: [string, string, () => string][] = [
    ['now', '/status', () => '/'],
    ['told', '/messages', told(() => ({}))],
    ['told, a further page', '/messages', () => random.pick(pages.told)],
    ['told, of a sink', '/messages', told(() => ({ sink: random.pick(sinks) }))],
    ['told, of a recipient', '/messages', told(() => ({ recipient: 'ana@example.com' }))],
    [
      'told, of a severity',
      '/messages',
      told(() => ({ severity: random.pick(['critical', 'high']) })),
    ],
    ['told, given up', '/messages', told(() => ({ state: 'dead' }))],
    ['not told', '/items', kept(() => ({}))],
    ['not told, a further page', '/items', () => random.pick(pages.notTold)],
    [
      'not told, of one rule',
      '/items',
      kept(() => ({ reason: 'silence', rule: random.pick(silences) })),
    ],
    ['not told, dead', '/items', kept(() => ({ state: 'dead' }))],
    ['not told, held', '/items', kept(() => ({ state: 'held' }))],
  ]
  return views.flatMap(([name, api, draw]) => both(name, api, draw))
}

function others({ known, random }: Visit): PageView[] {
  const search = (by: string, q: () => string): PageView[] =>
    both(`search, by ${by}`, '/events', () =>
      addressOf('/search', { q: q(), ...(by !== 'uid' && { by }) }),
    )
  const report = ['day', 'account', 'feed', 'severity', 'sink', 'destination', 'reason'].map(
    (by): PageView => ({
      name: `report by ${by} (API)`,
      draw: () => `/api/v1/report?since=30d&by=${by}`,
    }),
  )
  return [
    ...[1, 20, 150].flatMap((size) => messageOf(known, random, size)),
    ...both('event', '/events', () => {
      const { account, id } = random.pick(known.records)
      return `/events/${account}/${id}`
    }),
    ...search('uid', () => random.pick(known.records).uid),
    ...search('identifier', () => random.pick(known.identifiers)),
    ...search('login', () => random.pick(known.logins)),
    ...search('host', () => random.pick(known.hosts)),
    ...search('words', () => random.pick(words)),
    ...both('rules', '/rules', () => '/rules'),
    {
      name: 'rules, with a preview',
      draw: () => addressOf('/rules', { matchers: 'type="bot"', severity: 'high' }),
    },
    ...both('tenants', '/tenants', () => '/tenants'),
    ...report,
    ...['feeds', 'sinks', 'accounts', 'silences'].map((name): PageView => ({
      name: `${name} (API)`,
      draw: () => `/api/v1/${name}`,
    })),
  ]
}

/** None where the ledger has no such message. */
function messageOf({ messages }: Known, random: Random, size: number): PageView[] {
  const some = messages.get(size)
  if (!some) return []
  return [
    ...both(`message of ${size}`, '/messages', () => {
      const { id, atMs } = random.pick(some)
      return `/messages/${id}?at=${atMs}`
    }),
    ...(size === 20
      ? [{ name: 'message, by its id alone', draw: () => `/messages/${random.pick(some).id}` }]
      : []),
  ]
}

/** A view, and the answer of the API that it shows. */
function both(name: string, api: string, draw: () => string): PageView[] {
  const toApi = (path: string): string => `/api/v1${path.replace(/^\/[a-z-]*/, api)}`
  return [
    { name, draw },
    { name: `${name} (API)`, draw: () => toApi(draw()) },
  ]
}

function addressOf(path: string, query: object): string {
  return `${path}?${new URLSearchParams(query as Record<string, string>).toString()}`
}

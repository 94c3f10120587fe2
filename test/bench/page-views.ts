/** The views of the page, as visitors ask for them. */
import type { Random } from '../../src/sandbox/options.ts'
import type { Known } from './page-ledger.ts'

export interface PageView {
  name: string
  /** A path with its query, drawn anew for each request. */
  draw: () => string
  /** A file, which may be as large as it must. */
  isFile?: true
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

export function pageViews({ known, random, sinks, silences, pages }: Visit): PageView[] {
  const event = (): string => {
    const { account, id } = random.pick(known.records)
    return `/events/${account}/${id}`
  }
  const told = (filter: () => object) => (): string =>
    addressOf('/told', { since: random.pick(periods), ...filter() })
  const kept = (filter: () => object) => (): string =>
    addressOf('/not-told', { since: random.pick(periods), ...filter() })
  const search = (by: string, q: () => string) => (): string => addressOf('/search', { q: q(), by })
  const message = known.messages.get(20)
  const views: Record<string, () => string> = {
    now: () => '/',
    told: told(() => ({})),
    'told, a further page': () => random.pick(pages.told),
    'told, of a sink': told(() => ({ sink: random.pick(sinks) })),
    'told, given up': told(() => ({ state: 'dead' })),
    'not told': kept(() => ({})),
    'not told, a further page': () => random.pick(pages.notTold),
    'not told, of one rule': kept(() => ({ reason: 'silence', rule: random.pick(silences) })),
    event,
    ...(message && { 'message of 20': () => `/messages/${random.pick(message).id}` }),
    'search by uid': () => addressOf('/search', { q: random.pick(known.records).uid }),
    'search by identifier': search('identifier', () => random.pick(known.identifiers)),
    'search by login': search('login', () => random.pick(known.logins)),
    'search by host': search('host', () => random.pick(known.hosts)),
    'search by words': search('words', () => random.pick(words)),
    'rules, with a preview': () =>
      addressOf('/rules', { matchers: 'type="bot"', severity: 'high' }),
    tenants: () => '/tenants',
    'report by reason (API)': () => '/api/v1/report?since=30d&by=reason',
  }
  return [
    ...Object.entries(views).map(([name, draw]) => ({ name, draw })),
    { name: 'told as CSV, a day', draw: () => '/told.csv?since=1d', isFile: true },
  ]
}

function addressOf(path: string, query: object): string {
  return `${path}?${new URLSearchParams(query as Record<string, string>).toString()}`
}

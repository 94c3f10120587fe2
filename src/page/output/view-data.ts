/**
 * What each view shows: the answer of the API of the same name, and `page`. Times are ISO 8601 in
 * UTC, null is unknown, and every text may be hostile. A `url` or `*_url` is a path of this page.
 */

/** What every view gets beside its answer. */
export interface PageContext {
  title: string
  view: View
  /** The path of this address, without its query. */
  path: string
  user: { name: string; role: 'read' | 'act' } | null
  /** Whether there is a session to end: a visitor on loopback has none, nor has whom a proxy names. */
  signed_in: boolean
  /** The account that every view is narrowed to. */
  account: string | null
  accounts: string[]
  version: string
  as_of: string
  /** Form tokens by the path of the act; `/sign-out` among them for whoever is signed in. */
  tokens: Record<string, string>
}

/** A form that changes something. Its fields are hidden, or asked for. */
export interface Act {
  path: string
  label: string
  /** What is asked before it is done. */
  confirm: string | null
  fields: Field[]
}

export interface Field {
  name: string
  label: string
  value: string
  kind: 'text' | 'needed' | 'hidden'
}

export interface SeverityCounts {
  critical: number
  high: number
  medium: number
  low: number
  info: number
  unknown: number
}

interface Paged {
  /** The address of what is older. */
  next: string | null
  /** Set where reading ended before everything was looked at. */
  searched_back_to: string | null
}

interface EventLink {
  url: string | null
  title: string | null
  uid: string
  severity: string
}

export interface NowData {
  status: 'well' | 'degraded' | 'broken'
  sentence: string
  last_24h: {
    seen: number
    told: number
    messages: number
    suppressed: number
    diverted: number
    dead: number
    lost: number
    /** Critical events of which people were told, and how late at most; null: over a day. */
    criticals_told: number
    slowest_critical_s: number | null
  } | null
  hours: ({ at: string } & SeverityCounts)[]
  /** Those that are read latest, the worst first. */
  feeds: FeedLag[]
  findings: {
    check: string
    subject: string
    status: 'problem' | 'warning'
    detail: string
    remedy: string
    since: string | null
    stops: boolean
    /** Where more of it is shown. */
    url: string | null
    acts: Act[]
  }[]
  /** One for each of the feeds, by its name; all take the same `reason`. */
  pauses: Act[]
}

export interface FeedLag {
  name: string
  account: string
  /** null: not read yet. */
  lag_s: number | null
  objective_s: number
}

/** From visible to told, to people: upper bounds in s, null beyond a day. */
export interface DelayRow {
  name: string
  events: number
  p50_s: number | null
  p95_s: number | null
  worst_s: number | null
}

export interface Filters {
  since: string | null
  until: string | null
  sink: string | null
  recipient: string | null
  severity: string | null
  account: string | null
  state: string | null
  reason: string | null
  rule: string | null
}

export interface Choices {
  sinks: string[]
  /** As lists name them; over 100: not all. */
  recipients: string[]
  severities: string[]
  states: string[]
  accounts: string[]
}

export interface ToldCount {
  name: string
  told: number
  messages: number
}

export interface ToldData extends Paged {
  filters: Filters
  choices: Choices
  /** Of whole hours or days; null: the filters narrow by what nobody counts. */
  totals: { messages: number; events: number; whole: 'hour' | 'day' } | null
  by_day: ToldCount[]
  by_recipient: (ToldCount & { url: string })[]
  /** By severity, the worst first. */
  delays: DelayRow[]
  messages: {
    id: string
    at: string
    account: string
    sink: string
    recipient: string
    severity: string
    title: string | null
    /** Further events than the one of the title. */
    more: number
    events: number
    outcome: 'delivered' | 'dead'
    attempts: number
    delay_s: number | null
    url: string
  }[]
  csv_url: string
}

export interface Attempt {
  number: number
  at: string
  outcome: string
  reason: string | null
  reason_text: string | null
  answer: string | null
}

export interface MessageData {
  id: string
  at: string
  sink: string
  recipient: string
  outcome: string
  outcome_text: string
  severity: string
  attempts: Attempt[]
  /** Of a mail its subject, of what people read else its first line, of a machine's what it is about. */
  headline: string
  /** As its sink would send it from what is kept; `more_bytes`: of which only the beginning is shown. */
  as_sent: { text: string; is_json: boolean; more_bytes: number } | null
  /** Why there is none. */
  not_shown: string | null
  /** How many events it told of. */
  total: number
  /** Of many the worst. */
  events: (EventLink & { type: string; account: string; state: string; state_text: string })[]
  acts: Act[]
}

export interface EventData {
  account: string
  uid: string
  id: string
  /** `own`: what Tocsin tells of itself. */
  kind: 'event' | 'credential' | 'own'
  type: string
  severity: string
  title: string | null
  facts: { label: string; value: string }[]
  extract: { label: string; text: string } | null
  /** Set where the content, of which facts and extract are, is no longer kept: how long it is at most. */
  gone_after_s: number | null
  /** Leads to the account's service: the only address of a feed that can be clicked. */
  link: string | null
  unverified_link: string | null
  timeline: { at: string; what: string; detail: string | null }[]
  routes: {
    feed: string
    at: string
    severity: string
    path: string[]
    why: string[]
    /** Fields that could not be read, and so matched nothing. */
    unread: string[]
  }[]
  destinations: {
    sink: string
    recipient: string
    state: string
    since: string
    /** In words. */
    why: string
    /** What may come: `next try`, `at the latest until`. */
    next: { what: string; at: string } | null
    severity: string
    delay_s: number | null
    /** How it ended before it was sent again. */
    past: { state: string; at: string; delay_s: number | null }[]
    attempts: Attempt[]
    message_url: string | null
    /** The rule that kept it back. */
    rule_url: string | null
    item: string
  }[]
  seen_before: {
    kind: 'login' | 'host'
    count: number
    last_at: string
    /** Of the last one. */
    url: string
  }[]
  identifiers: { name: string; url: string }[]
  tags: string[]
  closed: 'ignored' | 'remediated' | null
  writes: { at: string; by: string; action: string; outcome: string }[]
  acts: Act[]
  silence_url: string | null
}

export interface NotToldData extends Paged {
  filters: Filters
  choices: Choices
  /** Items: an event counts once for each recipient that it was meant for. */
  groups: {
    reason: string
    reason_text: string | null
    rule: string | null
    rule_url: string | null
    owner: string | null
    because: string | null
    ends: string | null
    counts: SeverityCounts
    total: number
    url: string
  }[]
  items: {
    at: string
    event_url: string | null
    title: string | null
    uid: string
    severity: string
    account: string
    sink: string
    recipient: string
    state: string
    reason: string
    reason_text: string | null
    rule: string | null
    rule_url: string | null
    id: string
    /** `resend`, `discard`. */
    acts: string[]
  }[]
  /** Lists of what waits, which is not among the items. */
  waiting: { state: string; url: string }[]
  /** Done with the items that are chosen: field `id`, once for each. */
  acts: { replay: Act | null; discard: Act | null }
}

export interface RulesData {
  tree: {
    name: string
    path: string[]
    /** 0: the root. */
    depth: number
    matchers: string[]
    sinks: string[]
    events_7d: number
    /** It has not matched within the history. */
    never: boolean
    mode: string
    mutes: string[]
    summary: string
  }[]
  silences: {
    id: string
    phase: string
    starts: string | null
    until: string | null
    /** The most severe that it hides. */
    severity: string
    machines: boolean
    origin: string
    owner: string
    reason: string
    matchers: string[]
    /** An event counts once for each recipient. */
    hidden: number
    hidden_url: string
    acts: Act[]
  }[]
  mutes: { name: string; text: string; routes: string[]; active: boolean }[]
  configuration: { generation: string; since: string | null; by: string | null; text: string }
  /** Who did what by command, page or API, the newest first. */
  acts: {
    at: string
    by: string
    via: string
    act: string
    words: string
    account: string
    outcome: string
    /** What it touched, as far as it is recorded, and how many more. */
    items: string[]
    more: number
  }[]
  /** One for each sink, by its name; all take the same `reason`. */
  pauses: Act[]
  /** `names`: what matchers may begin with; `problem`: why what the address says is no silence. */
  silence_form: { act: Act; fields: Field[]; names: string[]; problem: string | null } | null
  /** What the silence of the form would have hidden. */
  preview: {
    matched: number
    of: number
    since: string
    examples: { title: string; url: string; severity: string }[]
  } | null
}

export interface TenantsData {
  rows: {
    account: string
    url: string
    lag_s: number | null
    feeds: number
    pending: number
    dead: number
    told_today: SeverityCounts
    key: string
    quota: string | null
    problems: number
    warnings: number
    worst: string | null
  }[]
  filters: { text: string | null }
  next: string | null
}

export interface SearchData extends Paged {
  query: string
  results: (EventLink & { url: string; type: string; account: string; at: string })[]
}

export interface ErrorData {
  status: number
  title: string
  detail: string
  remedy: string | null
  back: string
}

export interface SignInData {
  /** Where to go then. */
  next: string
  problem: string | null
  /** An address may fill it in, and is sent at once. */
  demo: boolean
}

/** Asks before an act where its form does not. */
export interface ConfirmData {
  title: string
  lines: string[]
  act: Act
}

/** What an act came to. */
export interface DoneData {
  title: string
  said: string[]
  touched: string | null
  back: string
}

export interface ViewData {
  done: DoneData
  now: NowData
  told: ToldData
  message: MessageData
  event: EventData
  'not-told': NotToldData
  rules: RulesData
  tenants: TenantsData
  search: SearchData
  error: ErrorData
  'sign-in': SignInData
  confirm: ConfirmData
}

export type View = keyof ViewData

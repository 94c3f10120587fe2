/** A morning of a SOC as the page shows it: one sample for each view, as its API answers. Invented. */
import { reasonText } from '../../src/operator/item-words.ts'
import type { Act } from '../../src/page/output/forms.ts'
import type { PageContext, View, ViewData } from '../../src/page/output/view-data.ts'
import type { SeverityCounts } from '../../src/operator/status.ts'

export type PageSample<V extends View = View> = {
  [K in V]: { view: K; data: ViewData[K] & { page: PageContext } }
}[V]

const asOfMs = Date.UTC(2026, 10, 27, 8, 12)

/** The time of all samples. */
export const sampleTime = new Date(asOfMs)

function minutesAgo(minutes: number): string {
  return new Date(asOfMs - minutes * 60_000).toISOString()
}

const none: SeverityCounts = { critical: 0, high: 0, medium: 0, low: 0, info: 0, unknown: 0 }

const acts: Act[] = []

function act(path: string, label: string, more: Partial<Act> = {}): Act {
  const made = { path, label, confirm: null, fields: [], ...more }
  acts.push(made)
  return made
}

const sink = { name: 'sink', label: 'Sink', value: 'oncall', kind: 'hidden' } as const
const resume = act('/acts/resume-sink', 'Resume', { fields: [sink] })
const test = act('/acts/test-sink', 'Send a test', { fields: [sink] })
const resend = act('/acts/resend', 'Send again', {
  confirm: 'Whoever has it already gets it twice, marked as a repeat.',
})
const ignore = act('/acts/ignore', 'Ignore', {
  confirm: 'Marks the event as ignored at the service. People are not told of it any more.',
})
const remediate = act('/acts/remediate', 'Remediate', {
  confirm: 'Marks the event as remediated at the service.',
})
const note = act('/acts/note', 'Write a note', {
  confirm: 'The note stands beside the event at the service.',
  fields: [{ name: 'text', label: 'Note', value: '', kind: 'text' }],
})
const expire = act('/acts/expire-silence', 'Expire now', {
  confirm: 'What it would have hidden is sent again from now on.',
  fields: [{ name: 'id', label: 'Silence', value: 'ccada3168', kind: 'hidden' }],
})
const discard = act('/acts/discard', 'Discard', {
  confirm: 'Gives the chosen events up. They count as dead, and nobody is told.',
  fields: [{ name: 'why', label: 'Reason', value: '', kind: 'text' }],
})
const replayChosen = act('/acts/replay-items', 'Replay')
const silence = act('/acts/silence', 'Silence')
const pauses = ['acme-brand', 'acme-staff', 'globex-brand'].map((name) =>
  act(`/feeds/${name}/pause`, name),
)

function context(view: View, title: string, path: string): PageContext {
  return {
    title,
    view,
    path,
    user: { name: 'mira.keller', role: 'act' },
    signed_in: true,
    account: null,
    accounts: ['acme', 'globex', 'initech', 'umbrella'],
    version: '1.0.0',
    as_of: minutesAgo(0),
    tokens: Object.fromEntries(
      ['/sign-out', ...acts.map(({ path: one }) => one)].map((one) => [one, 'k7Qm2xVb9TzR4nHs']),
    ),
  }
}

type Finding = ViewData['now']['findings'][number]

function finding(check: string, subject: string, more: Partial<Finding>): Finding {
  const of = { since: null, stops: false, url: null, acts: [] }
  return { check, subject, status: 'problem', detail: '', remedy: '', ...of, ...more }
}

const now: ViewData['now'] = {
  status: 'degraded',
  sentence: 'problems with 2 sinks and 1 feed, and 1 warning',
  last_24h: {
    seen: 1412,
    told: 396,
    messages: 118,
    suppressed: 61,
    diverted: 14,
    dead: 3,
    lost: 0,
    criticals_told: 7,
    slowest_critical_s: 41,
  },
  hours: Array.from({ length: 24 }, (_, at) => ({
    at: new Date(Math.floor(asOfMs / 3_600_000) * 3_600_000 - (23 - at) * 3_600_000).toISOString(),
    info: [22, 18, 9, 4, 3, 2, 2, 5, 11, 24, 31, 28][at % 12] ?? 0,
    low: (at * 7) % 19,
    medium: (at * 5) % 13,
    high: at % 5 === 0 ? 6 : at % 3,
    critical: [3, 9, 10, 17].includes(at) ? 1 + (at % 3) : 0,
    unknown: at === 14 ? 2 : 0,
  })),
  feeds: [
    { name: 'globex-brand', account: 'globex', lag_s: null, objective_s: 60 },
    { name: 'acme-brand', account: 'acme', lag_s: 190, objective_s: 60 },
    { name: 'acme-staff', account: 'acme', lag_s: 12, objective_s: 60 },
  ],
  findings: [
    finding('delivery', 'oncall', {
      detail:
        'circuit open, 38 times, last: unauthorized, pagerduty answered 401; next try 08:14:20 UTC; 14 events wait for it, among them 2 critical; its fallback soc takes what waits from 08:31 UTC on',
      remedy:
        'make a new integration key, write it to the secret file of sinks.oncall, reload, then resume',
      since: minutesAgo(101),
      stops: true,
      acts: [resume, test],
    }),
    finding('feed', 'leaks', {
      detail:
        'lag 42 min, objective 15 min; failing 9 times, last: unavailable, HTTP 503; next try 08:13:05 UTC',
      remedy: 'nothing, if the service mends itself; tocsin feeds list leaks shows the answers',
      since: minutesAgo(44),
    }),
    finding('account', 'initech', {
      status: 'warning',
      detail: '11 of 500 searches of this month are left',
      remedy: 'raise the quota at the service, or limits.reserve',
    }),
  ],
  pauses,
}

const filters: ViewData['told']['filters'] = {
  since: '7d',
  until: null,
  sink: null,
  recipient: null,
  severity: null,
  account: null,
  state: null,
  reason: null,
  rule: null,
}
const choices: ViewData['told']['choices'] = {
  sinks: ['digest', 'oncall', 'siem', 'soc', 'tickets'],
  recipients: ['#soc-alerts', 'PagerDuty service P7X2', 'security-leads@acme.com'],
  severities: ['critical', 'high', 'medium', 'low', 'info'],
  states: ['delivered', 'dead', 'suppressed', 'held', 'diverted', 'discarded', 'quarantined'],
  accounts: ['acme', 'globex', 'initech', 'umbrella'],
}

const titles = `
critical | stealer_log | Stealer log: Lumma on DESKTOP-7 (CH), joe@acme[.]com at sso[.]acme[.]com | stealer_log/stealer_logs_live/12345
critical | ransomleak | Ransomware post: LockBit 5 names Globex Manufacturing, 214 GB, until 2026-12-04 | ransomleak/lockbit5/9f31c2
high | leaked_credential | Credential: ann@acme[.]com in Combolist Autumn 2026, password h••••2 | leaked_credential/24511/88310277
high | bot | Bot for sale: login[.]acme[.]com on Russian Market, 19.99 USD | bot/russian_market/500001
medium | forum_post | Forum post: "fresh access acme[.]com vpn" by k0rsar on XSS | forum_post/xss/topic-771288#p12
medium | lookalike_domain | Lookalike domain: acrne-login[.]com, registered 2026-11-26, has mail | lookalike_domain/domains/acrne-login.com
low | paste | Paste: [withheld: may hold a secret], 3 addresses of acme[.]com | paste/pastebin/Zx81kQ2p
info | chat_message | Chat: acme[.]com named in Telegram channel @combo_cloud_free | chat_message/telegram/1602217781/44120
low | google_dork | Indexed file: intranet-acme-phonebook-2026-q3-final-final-v7-copy[.]xlsx at files[.]acme[.]com | google_dork/google/8891
unknown | actor_profile | Actor profile: k0rsar, now also sells "corporate access CH/DE" | actor_profile/xss/k0rsar
`
  .trim()
  .split('\n')
  .map((line) => line.split(' | ') as [severity: string, type: string, title: string, uid: string])

const recipients: readonly [sink: string, recipient: string][] = [
  ['soc', '#soc-alerts'],
  ['oncall', 'PagerDuty service P7X2'],
  ['digest', 'security-leads@acme.com'],
  ['siem', 'siem.acme.com'],
  ['tickets', 'tickets.acme.com'],
]

function eventUrl(uid: string): string {
  return `/events/acme/${encodeURIComponent(uid)}`
}

const told: ViewData['told'] = {
  filters,
  choices,
  totals: { messages: 812, events: 2764, whole: 'day' },
  by_day: [310, 402, 377, 190, 122, 468, 895].map((count, at) => ({
    name: `2026-11-${21 + at}`,
    told: count,
    messages: Math.round(count / 3.4),
  })),
  delays: [
    { name: 'critical', events: 61, p50_s: 10, p95_s: 45, worst_s: 120 },
    { name: 'high', events: 214, p50_s: 120, p95_s: 600, worst_s: null },
  ],
  by_recipient: [
    { name: 'siem → siem.acme.com', told: 1412, messages: 318 },
    { name: 'soc → #soc-alerts', told: 861, messages: 240 },
    { name: 'digest → security-leads@acme.com', told: 402, messages: 14 },
    { name: 'oncall → PagerDuty service P7X2', told: 61, messages: 61 },
    { name: 'tickets → tickets.acme.com', told: 28, messages: 28 },
  ].map((row) => ({ ...row, url: `/told?recipient=${encodeURIComponent(row.name)}` })),
  messages: Array.from({ length: 50 }, (_, at) => {
    const [severity, , title] = titles[at % titles.length]!
    const [sink, recipient] = recipients[(at * 3) % recipients.length]!
    const more = at % 4 === 2 ? (at * 7) % 40 : 0
    const isDead = at % 17 === 8
    return {
      id: `b${(0x9f3a77c0 + at * 7919).toString(16)}41`,
      at: minutesAgo(3 + at * 23),
      account: ['acme', 'globex', 'acme', 'initech'][at % 4]!,
      sink,
      recipient,
      severity,
      title: at === 31 ? null : title,
      more,
      events: more + 1,
      outcome: isDead ? ('dead' as const) : ('delivered' as const),
      attempts: isDead ? 5 : 1 + Number(at % 9 === 4),
      delay_s: isDead ? null : 9 + ((at * 13) % 70),
      url: `/messages/acme/b${(0x9f3a77c0 + at * 7919).toString(16)}41`,
    }
  }),
  next: '/told?since=7d&cursor=MTc2NDIzMTEyMA',
  searched_back_to: null,
  csv_url: '/told.csv?since=7d',
}

type Attempt = ViewData['message']['attempts'][number]

function attempt(number: number, reason: string | null, answer: string | null): Attempt {
  const words = { reason, reason_text: reason === null ? null : reasonText(reason) }
  const outcome = reason === null ? 'delivered' : 'failed'
  return { number, at: minutesAgo(13 - number), outcome, ...words, answer }
}

const attempts = [attempt(1, 'timeout', null), attempt(2, null, 'HTTP 200 ok')]

const headline = 'CRITICAL · Stealer log: joe@acme[.]com at sso[.]acme[.]com'

const asSent = {
  text: [
    headline,
    '',
    'Accounts: joe@acme[.]com, ann@acme[.]com',
    'Login page: sso[.]acme[.]com/login',
    'Password: h••••!',
    'Computer: DESKTOP-7, user admin, 203[.]0[.]113[.]9 (CH)',
    'Malware: Lumma, infected 2026-11-26 08:30',
    'Next step: Isolate DESKTOP-7, end the sessions of joe@acme[.]com, then change the password.',
  ].join('\n'),
  is_json: false,
  more_bytes: 0,
}

export const message: ViewData['message'] = {
  id: 'b9f3a77c041',
  at: minutesAgo(11),
  sink: 'soc',
  recipient: '#soc-alerts',
  outcome: 'delivered',
  outcome_text: 'the sink accepted it',
  severity: 'critical',
  attempts,
  headline,
  as_sent: asSent,
  not_shown: null,
  total: 4,
  events: titles.slice(0, 4).map(([severity, type, title, uid]) => ({
    url: eventUrl(uid),
    title,
    uid,
    type,
    severity,
    account: 'acme',
    state: 'delivered',
    state_text: 'the sink accepted it',
  })),
  acts: [resend],
}

type Destination = ViewData['event']['destinations'][number]

function destination(sink: string, more: Partial<Destination>): Destination {
  return {
    sink,
    recipient: '#soc-alerts',
    state: 'delivered',
    since: minutesAgo(13),
    why: '',
    next: null,
    severity: 'critical',
    delay_s: null,
    past: [],
    attempts: [],
    message_url: null,
    rule_url: null,
    item: `e7f31c2a9d04b-${sink}`,
    ...more,
  }
}

const event: ViewData['event'] = {
  account: 'acme',
  kind: 'event',
  uid: 'stealer_log/stealer_logs_live/12345',
  id: '7f31c2a9d04b',
  type: 'Stealer log',
  severity: 'critical',
  title: 'Stealer log: Lumma on DESKTOP-7 (CH), joe@acme[.]com at sso[.]acme[.]com',
  facts: Object.entries({
    Accounts: 'joe@acme[.]com, ann@acme[.]com, j[.]smith@acme[.]com',
    'Login page': 'hxxps://sso[.]acme[.]com/login?next=%2Fadmin%2Fvpn%2Fprofile%2F7719',
    Password: 'h••••!',
    Computer: 'DESKTOP-7, user admin, Windows 11',
    Address: '203[.]0[.]113[.]9 (CH)',
    Malware: 'Lumma, infected 2026-11-26 08:30 UTC',
  }).map(([label, value]) => ({ label, value })),
  extract: {
    label: 'Found in passwords.txt',
    text: 'URL: sso[.]acme[.]com/login\nUSER: joe@acme[.]com\nPASS: [withheld: may hold a secret]',
  },
  link: 'https://app.example.com/#/events/stealer_log/stealer_logs_live/12345',
  unverified_link: 'hxxps://t[.]me/s/combo_cloud_free/44120',
  timeline: (
    [
      [1420, 'created', 'by the clock of the service'],
      [14, 'matched', 'identifier acme[.]com'],
      [13, 'fetched', 'feed brand, 22 s after it was matched'],
      [13, 'routed', 'urgent › stealer logs'],
      [12, 'sent to soc', 'timeout'],
      [11, 'told #soc-alerts', 'second try, 3 min after it was visible'],
    ] as const
  ).map(([minutes, what, detail]) => ({ at: minutesAgo(minutes), what, detail })),
  routes: [
    {
      feed: 'brand',
      at: minutesAgo(13),
      severity: 'critical',
      path: ['root', 'urgent', 'stealer logs'],
      why: ['severity>=high', 'type="stealer_log"'],
      unread: ['victim_information.hwid'],
    },
  ],
  destinations: [
    destination('soc', {
      why: 'the sink accepted it',
      delay_s: 161,
      past: [{ state: 'dead', at: minutesAgo(12), delay_s: null }],
      attempts,
      message_url: '/messages/acme/b9f3a77c041',
    }),
    destination('oncall', {
      recipient: 'PagerDuty service P7X2',
      state: 'retrying',
      why: 'unauthorized, the receiver refuses the key or the sign-in: 401, 403; the receiver answered 401',
      next: { what: 'next try', at: minutesAgo(-2) },
      attempts: [attempt(1, 'unauthorized', 'HTTP 401: {"status":"invalid key"}')],
    }),
    destination('digest', {
      recipient: 'security-leads@acme.com',
      state: 'suppressed',
      why: 'a silence suppresses such events: ccada3168',
      severity: 'high',
    }),
  ],
  seen_before: [
    { kind: 'login', count: 3, last_at: minutesAgo(40_000), url: eventUrl('leak/24511/8831') },
    { kind: 'host', count: 12, last_at: minutesAgo(1900), url: eventUrl('stealer_log/24511/7') },
  ],
  identifiers: [
    { name: 'acme[.]com', url: '/search?q=acme.com' },
    { name: 'VIP: Joe Smith', url: '/search?q=Joe+Smith' },
  ],
  tags: ['vip', 'eu', 'customer-facing'],
  gone_after_s: null,
  closed: null,
  writes: [{ at: minutesAgo(6), by: 'mira.keller', action: 'note', outcome: 'done' }],
  acts: [resend, ignore, remediate, note],
  silence_url: '/rules?matchers=type%3D%22stealer_log%22&back=%2Fevents%2Facme%2Fx#silence',
}

type Group = ViewData['not-told']['groups'][number]

function group(reason: string, more: Partial<Group>): Group {
  const of = { rule: null, rule_url: null, owner: null, because: null, ends: null }
  const words = { reason, reason_text: reasonText(reason) }
  return { ...words, ...of, counts: none, total: 0, url: `/not-told?reason=${reason}`, ...more }
}

const notTold: ViewData['not-told'] = {
  filters,
  choices,
  groups: [
    group('invalid', { counts: { ...none, critical: 1, high: 2 }, total: 3 }),
    group('silence', {
      rule: 'ccada3168',
      rule_url: '/rules#silence-ccada3168',
      owner: 'mira.keller',
      because: 'pentest of the VPN by Redteam AG',
      ends: minutesAgo(-3100),
      counts: { ...none, high: 31, medium: 12 },
      total: 43,
    }),
    group('shadow', {
      rule: 'new-types',
      owner: 'configuration',
      because: 'recorded, never sent',
      counts: { ...none, info: 288, unknown: 2 },
      total: 290,
    }),
  ],
  waiting: [{ state: 'held', url: '/not-told?state=held' }],
  items: Array.from({ length: 50 }, (_, at) => {
    const [severity, , title, uid] = titles[(at * 3) % titles.length]!
    const [sink, recipient] = recipients[(at * 2) % recipients.length]!
    const [state, reason, rule] = (
      [
        ['dead', 'unauthorized', null],
        ['suppressed', 'silence', 'ccada3168'],
        ['suppressed', 'inhibition', 'valid_credential'],
        ['held', 'mute', 'night'],
      ] as const
    )[at % 4]!
    return {
      at: minutesAgo(8 + at * 31),
      event_url: at === 7 ? null : eventUrl(uid),
      acts: at % 3 === 0 ? ['resend', 'discard'] : [],
      title: at === 7 ? null : title,
      uid,
      severity,
      account: ['acme', 'globex'][at % 2]!,
      sink,
      recipient,
      state,
      reason,
      reason_text: reasonText(reason),
      rule,
      rule_url: reason === 'silence' ? `/rules#silence-${rule}` : null,
      id: `e7f31c2a9d${at}`,
    }
  }),
  next: '/not-told?cursor=MTc2NDIzMTEyMA',
  searched_back_to: minutesAgo(2900),
  acts: { replay: replayChosen, discard },
}

type Node = ViewData['rules']['tree'][number]

function node(way: string, more: Partial<Node>): Node {
  const path = way.split(' > ')
  const usual = { matchers: [], sinks: ['soc'], events_7d: 0, never: false, mutes: [], summary: '' }
  const place = { name: path.at(-1) ?? '', path, depth: path.length - 1 }
  return { ...place, ...usual, mode: 'live', ...more }
}

type Silence = ViewData['rules']['silences'][number]

const pentest: Silence = {
  id: 'ccada3168',
  phase: 'active',
  starts: minutesAgo(1100),
  until: minutesAgo(-3100),
  severity: 'high',
  machines: false,
  origin: 'operator',
  owner: 'mira.keller',
  reason: 'pentest of the VPN by Redteam AG',
  matchers: ['type="stealer_log"', 'host="vpn[.]acme[.]com"'],
  hidden: 43,
  hidden_url: '/not-told?reason=silence&rule=ccada3168&since=90d',
  acts: [expire],
}
const campaign: Partial<Silence> = {
  id: 'known-campaign',
  phase: 'over',
  until: minutesAgo(4),
  machines: true,
  origin: 'config',
  reason: 'known campaign of lookalikes, taken down already',
  matchers: ['type="lookalike_domain"'],
  acts: [],
}

const rules: ViewData['rules'] = {
  tree: [
    node('root', { sinks: ['digest'], events_7d: 902 }),
    node('root > everything', {
      sinks: ['siem'],
      events_7d: 2764,
      summary: 'sends at once, then at most one message every 5 min; goes on to the next',
    }),
    node('root > urgent', {
      matchers: ['severity>=high'],
      events_7d: 214,
      summary: 'waits 10 s for more of the same type, then sends at most one message every 5 min',
    }),
    node('root > urgent > stealer logs', {
      matchers: ['type="stealer_log"', 'severity="critical"'],
      sinks: ['soc', 'oncall'],
      events_7d: 17,
      summary: 'sends at once, then at most one message of the same type every 5 min',
    }),
    node('root > urgent > ransomware', {
      matchers: ['type=~"ransomleak|ransom_note"'],
      sinks: ['soc', 'oncall', 'tickets'],
      never: true,
    }),
    node('root > pastes', { matchers: ['type="paste"'], events_7d: 61, mutes: ['night'] }),
    node('root > new types', { matchers: ['type!~"bot|paste"'], events_7d: 290, mode: 'shadow' }),
  ],
  silences: [pentest, { ...pentest, ...campaign }],
  mutes: [
    { name: 'night', text: '19:00 to 07:00, Europe/Zurich', routes: ['pastes'], active: false },
    { name: 'weekend', text: 'Saturday and Sunday', routes: ['pastes', 'urgent'], active: true },
  ],
  configuration: {
    generation: '41, 9c1f0a77',
    since: minutesAgo(5300),
    by: null,
    text: 'accounts:\n  acme:\n    base_url: https://api.example.com\n    api_key: <secret>\n',
  },
  acts: [
    {
      at: minutesAgo(1380),
      by: 'mara',
      via: 'page',
      act: '/items/resend',
      words: 'send 4 items again',
      account: 'acme',
      outcome: 'done',
      items: ['acme/i:0123456789abcdef01234567:0:soc'],
      more: 3,
    },
  ],
  pauses,
  silence_form: {
    act: silence,
    fields: (
      [
        ['matchers', 'Matchers, such as type="paste"', 'type="paste" feed="brand"'],
        ['for', 'For how long', '2h'],
        ['severity', 'Up to this severity', 'medium'],
        ['reason', 'Reason', 'known campaign'],
      ] as const
    ).map(([name, label, value]) => ({ name, label, value, kind: 'text' })),
    names: ['type=', 'account=', 'severity='],
    problem: 'Matcher 2: not a matcher',
  },
  preview: {
    matched: 61,
    of: 2764,
    since: minutesAgo(7 * 1440),
    examples: titles
      .slice(6, 9)
      .map(([severity, , title, uid]) => ({ title, url: eventUrl(uid), severity })),
  },
}

const tenants: ViewData['tenants'] = {
  rows: Array.from({ length: 50 }, (_, at) => ({
    account:
      ['initech', 'globex', 'acme', 'umbrella'][at] ?? `tenant-${String(at).padStart(3, '0')}`,
    url: `/?account=tenant-${at}`,
    lag_s: at === 3 ? null : 14 + ((at * 37) % 90) + (at === 0 ? 2500 : 0),
    feeds: 1 + (at % 4),
    pending: at < 4 ? 31 - at * 9 : 0,
    dead: at < 2 ? 3 - at : 0,
    told_today: {
      ...none,
      critical: Number(at < 2),
      high: (at * 3) % 5,
      medium: (at * 7) % 9,
      info: at % 6,
    },
    key: at === 0 ? 'refused since 06:31' : 'ok',
    quota: at % 3 === 0 ? `${500 - at * 9} of 500` : null,
    problems: at < 3 ? 3 - at : 0,
    warnings: 1,
    worst:
      at < 3
        ? ['the service refuses its key: 401', 'feed leaks is 42 min behind', '1 dead letter'][at]!
        : null,
  })),
  filters: { text: null },
  next: '/tenants?cursor=tenant-049',
}

function sample<V extends View>(
  view: V,
  title: string,
  path: string,
  data: ViewData[V],
): { view: V; data: ViewData[V] & { page: PageContext } } {
  return { view, data: { ...data, page: context(view, title, path) } }
}

const nobody = { user: null, signed_in: false, accounts: [], tokens: {} }

/** Each view at its fullest. */
export const pageSamples: readonly PageSample[] = [
  sample('now', 'Degraded', '/', now),
  sample('told', 'Told', '/told', told),
  sample('message', 'Message to #soc-alerts', '/messages/acme/b9f3a77c041', message),
  sample('event', 'Stealer log: Lumma on DESKTOP-7', eventUrl(event.uid), event),
  sample('not-told', 'Not told', '/not-told', notTold),
  sample('rules', 'Rules', '/rules', rules),
  sample('tenants', 'Tenants', '/tenants', tenants),
  sample('search', 'Search', '/search', {
    query: 'joe@acme.com',
    results: titles.map(([severity, type, title, uid], at) => ({
      url: eventUrl(uid),
      title,
      uid,
      type,
      severity,
      account: 'acme',
      at: minutesAgo(30 + at * 4000),
    })),
    next: '/search?q=joe%40acme.com&cursor=x',
    searched_back_to: minutesAgo(40_000),
  }),
  sample('error', 'Not found', '/events/acme/none', {
    status: 404,
    title: 'There is no such event',
    detail:
      'Its history may have ended: an event is kept for 90 days after the last that was done with it.',
    remedy: 'search for its uid at the service',
    back: '/told',
  }),
  {
    view: 'sign-in',
    data: {
      next: '/told',
      problem: 'Name or password is wrong.',
      demo: false,
      page: { ...context('sign-in', 'Sign in', '/sign-in'), ...nobody },
    },
  },
  sample('done', 'Done', '/silences', {
    title: 'Done',
    said: ['Silence sfe79a48c begins within seconds and ends 2026-11-27 10:12:00 UTC.'],
    touched: '/rules#silence-sfe79a48c',
    back: eventUrl(event.uid),
  }),
]

/** A tree has a root, a message an event. */
const neverEmpty = ['tree', 'events']

const optional = [
  'title',
  'extract',
  'link',
  'unverified_link',
  'silence_url',
  'as_sent',
  'totals',
  'next',
  'searched_back_to',
  'last_24h',
  'preview',
  'silence_form',
]

/** Each view where there is nothing yet, for a reader of one account. */
export const emptySamples: readonly PageSample[] = pageSamples
  .filter(({ view }) => !['error', 'done', 'sign-in'].includes(view))
  .map(({ view, data }) => {
    const page = {
      ...data.page,
      user: { name: 'local', role: 'read' },
      signed_in: false,
      account: 'acme',
      accounts: ['acme'],
      tokens: {},
    }
    return { view, data: { ...emptied(data), page } } as PageSample
  })

function emptied(data: object): object {
  const nothing = Object.entries(data).map(([key, value]: [string, unknown]) => {
    if (Array.isArray(value) && !neverEmpty.includes(key)) return [key, []]
    if (optional.includes(key)) return [key, null]
    if (key === 'not_shown') return [key, 'Its content is no longer stored.']
    return [key, key === 'acts' ? { replay: null, discard: null } : value]
  })
  return {
    ...Object.fromEntries(nothing),
    ...('status' in data && {
      status: 'well',
      sentence: 'Every feed is read, and every sink takes what is sent.',
    }),
  }
}

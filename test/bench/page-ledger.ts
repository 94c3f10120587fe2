/**
 * Ledgers of many records over 90 days, written straight into Redis as the scripts write them: records with
 * their index, endings, terms, counters and dated counts; most settled, some pending, held, dead, quarantined.
 * The same seed draws the same ledger, but for keys and times.
 */
import type { Config } from '../../src/config/config.ts'
import { type Severity, severityRank, type ThreatEvent } from '../../src/event.ts'
import { destinationLabels } from '../../src/operator/recipients.ts'
import { redisNow } from '../../src/redis/scripts.ts'
import { createRandom, type Random } from '../../src/sandbox/options.ts'
import { type AccountLedger, openLedgers } from '../../src/store/account-ledger.ts'
import { noteAct, noteActOutcome } from '../../src/store/acts.ts'
import type { Outcome } from '../../src/store/dated-counts.ts'
import { openFeed } from '../../src/store/feed-state.ts'
import type { OpenLedgers } from '../../src/operator/open-ledgers.ts'
import type { StoredItem } from '../../src/store/records.ts'
import { toStoredTerms } from '../../src/store/terms.ts'
import { RecordWriter } from './record-writer.ts'

export interface LedgerPlan {
  /** Of all accounts together. */
  records: number
  seed: number
}

/** What a visitor may ask for. */
export interface Known {
  records: { account: string; id: string; uid: string }[]
  /** Messages by how many events they have. */
  messages: Map<number, { id: string; atMs: number }[]>
  identifiers: string[]
  logins: string[]
  hosts: string[]
}

const [hourMs, dayMs] = [3_600_000, 86_400_000]

/** A little less than the history, so that nothing expires meanwhile. */
const spanMs = 89 * dayMs

/** Share of records of the last week of which an item waits. */
const pendingShare = 0.1

export async function seedLedgers(
  { redis, keys }: Pick<OpenLedgers, 'redis' | 'keys'>,
  config: Config,
  { records, seed }: LedgerPlan,
): Promise<Known> {
  const names = config.accounts.map(({ name }) => name)
  const ledgers = await openLedgers({ redis, keys, config: config.ledger }, names)
  const known: Known = { records: [], messages: new Map(), identifiers: [], logins: [], hosts: [] }
  const random = createRandom(seed)
  for (const [at, ledger] of ledgers.entries()) {
    const count =
      Math.floor((records * (at + 1)) / names.length) - Math.floor((records * at) / names.length)
    const samples = Math.max(20, 2_000 / names.length)
    await new AccountSeeder(ledger, { config, random, known, count, samples }).run()
  }
  for (let i = 0; i < 50; i += 1) {
    const act = `/sinks/${config.sinks[i % config.sinks.length]!.name}/resume`
    const note = { by: 'mira', act, via: 'page', account: '' } as const
    await noteActOutcome({ redis, keys }, await noteAct({ redis, keys }, note), 'done')
  }
  // a replica that gives signs: what is judged of a running one is judged
  const nowMs = await redisNow({ redis })
  await redis.hset(keys.shared('generation'), 'confirmed', nowMs + dayMs)
  return known
}

const shares: readonly [Severity, number][] = [
  ['critical', 0.02],
  ['high', 0.11],
  ['medium', 0.28],
  ['low', 0.55],
  ['info', 1],
]

/** Type, source, what its title says before the name. */
const kinds = [
  ['stealer_log', 'stealer_logs_live', 'Stealer log: Lumma on'],
  ['leaked_credential', '24511', 'Credential: in Combolist Autumn,'],
  ['bot', 'russian_market', 'Bot for sale on Russian Market:'],
  ['forum_post', 'xss', 'Forum post: fresh access, vpn, of'],
  ['chat_message', 'telegram', 'Chat: named in a channel,'],
  ['lookalike_domain', 'domains', 'Lookalike domain, registered, has mail:'],
  ['paste', 'pastebin', 'Paste: addresses of'],
] as const

/** An event of which some items have not ended yet. */
interface Draft {
  recordId: string
  atMs: number
  visibleMs: number
  severity: Severity
  stored: { u: string; i: StoredItem[] } & Record<string, unknown>
  /** Items that will end. */
  open: number
}

interface Member {
  draft: Draft
  index: number
}

interface Gathering {
  size: number
  members: Member[]
}

/** Sizes of messages by the sink that sends them. */
const sizes: Readonly<Record<string, readonly number[]>> = {
  siem: [1, 5, 20, 30, 50],
  soc: [1, 1, 1, 1, 2, 3, 5, 8, 20, 20],
  leads: [100, 200, 350, 500],
}

interface SeederOptions {
  config: Config
  random: Random
  known: Known
  count: number
  /** Records that are noted as known. */
  samples: number
}

class AccountSeeder {
  readonly #ledger: AccountLedger
  readonly #options: SeederOptions
  readonly #writer: RecordWriter
  readonly #destinations: readonly string[]
  readonly #gatherings = new Map<string, Gathering>()
  readonly #identifiers: string[]
  /** How often a login or host was seen, and in which record last. */
  readonly #seen = new Map<string, { bucket: number; n: number; atMs: number; recordId: string }>()
  readonly #open = new Set<Draft>()
  #nowMs = 0

  constructor(ledger: AccountLedger, options: SeederOptions) {
    this.#ledger = ledger
    this.#options = options
    this.#writer = new RecordWriter(ledger)
    this.#destinations = [...destinationLabels(options.config).keys()]
    this.#identifiers = Array.from(
      { length: 40 },
      (_none, i) => `brand-${i}.${ledger.account}.example`,
    )
  }

  async run(): Promise<void> {
    this.#nowMs = await redisNow(this.#ledger)
    const { known, count } = this.#options
    let place = 0
    for (const atMs of timesOf(this.#nowMs, count, this.#options.random)) {
      this.#takeIn(atMs, (place += 1))
      await this.#writer.drain()
    }
    // the last messages of many accounts end within half an hour, not at once
    const lastMs = this.#nowMs - Math.floor(0.5 * hourMs * this.#options.random.next())
    for (const [destination, { members }] of this.#gatherings) {
      if (members.length > 0) this.#send(destination, members, lastMs)
    }
    for (const draft of this.#open) this.#writer.writeRecord(draft)
    await this.#quarantine(Math.ceil(Math.min(200, count / 100)))
    await this.#openFeeds()
    this.#writeSeen()
    await this.#writer.end(this.#nowMs)
    known.identifiers.push(...this.#identifiers.slice(0, 5))
  }

  #takeIn(atMs: number, place: number): void {
    const { random, known } = this.#options
    const severity = drawSeverity(random)
    const event = this.#drawEvent(severity, atMs, place)
    const login = `user${random.int(1, Math.max(20, this.#options.count / 10))}@${event.identifiers[0]!.name}`
    const host = `DESKTOP-${random.int(1, Math.max(10, this.#options.count / 20))}`
    const recordId = this.#ledger.fingerprints.recordId(event.uid)
    const victims = { logins: [login], hosts: event.type === 'stealer_log' ? [host] : [] }
    const draft = this.#draft({ event, recordId, atMs, title: titleOf(event, login, host) })
    this.#noteTerms(draft, toStoredTerms(this.#ledger, event, victims))
    this.#addItems(draft, event.type)
    if (atMs > this.#nowMs - this.#ledger.retention.payload)
      this.#writer.writePayload(draft, { event, fetchedAtMs: atMs })
    if (draft.open === 0 && !this.#open.has(draft)) this.#writer.writeRecord(draft)
    if (place % Math.ceil(this.#options.count / this.#options.samples) !== 0) return
    known.records.push({ account: this.#ledger.account, id: recordId, uid: event.uid })
    known.logins.push(login)
    if (victims.hosts.length > 0) known.hosts.push(host)
  }

  #drawEvent(severity: Severity, atMs: number, place: number): ThreatEvent {
    const { random } = this.#options
    const [type, source] = random.pick(kinds)
    const name = this.#identifiers[Math.floor(40 * random.next() ** 2)]!
    const uid = `${type}/${source}/${place}-${random.hex(6)}`
    return {
      uid,
      kind: 'event',
      type,
      source,
      severity,
      originalSeverity: null,
      createdAtMs: atMs - random.int(60_000, 600_000),
      matchedAtMs: atMs - random.int(5_000, 60_000),
      ignoredAtMs: null,
      remediatedAtMs: null,
      url: `https://app.example.com/#/uid?uid=${uid}`,
      tags: random.chance(0.2) ? ['vip', 'eu'] : [],
      notes: null,
      identifiers: [{ id: 1, name }],
      highlights: {
        'credentials.url': [`https://sso.<mark>${name}</mark>/login`],
        'credentials.username': [`joe@<mark>${name}</mark>`, `ann@<mark>${name}</mark>`],
        content: [`fresh access to <mark>${name}</mark>, corporate vpn, price on request`],
      },
    }
  }

  #draft({
    event,
    recordId,
    atMs,
    title,
  }: {
    event: ThreatEvent
    recordId: string
    atMs: number
    title: string
  }): Draft {
    const { uid, type, severity, createdAtMs, matchedAtMs, identifiers, tags } = event
    const feed = `${this.#ledger.account}-${type === 'leaked_credential' ? 'staff' : 'brand'}`
    const routes = routesOf(severity, type)
    const about = {
      title,
      created: createdAtMs,
      matched: matchedAtMs,
      fetched: atMs,
      identifiers: identifiers.map(({ name }) => name),
      ...(tags.length > 0 && { tags }),
    }
    const visibleMs = matchedAtMs ?? atMs
    const sighting = {
      f: feed,
      at: atMs,
      sv: severity,
      l: {},
      w: routes.map((route) => ({ route, path: ['root', route], why: [whyOf[route] ?? ''] })),
      v: visibleMs,
    }
    const stored = {
      u: uid,
      ty: type,
      rk: severityRank(severity),
      sv: severity,
      t: atMs,
      f: [sighting],
      i: [],
      about,
    }
    for (const name of [`f|${feed}|fetched`, `f|${feed}|new`, 'records']) this.#writer.bump(name)
    this.#writer.tally(atMs, 'new', feed, severity)
    this.#writer.tally(atMs, 'event', severity)
    for (const route of new Set(['root', ...routes]))
      this.#writer.tally(atMs, 'route', route, severity)
    return { recordId, atMs, visibleMs, severity, stored, open: 0 }
  }

  #noteTerms(draft: Draft, terms: ReturnType<typeof toStoredTerms>): void {
    const { recordId, atMs, stored } = draft
    const before: object[] = []
    for (const { k, t, b } of terms) {
      if (k === 'identifier') {
        this.#writer.append(['of', t], atMs, ['r', recordId])
        continue
      }
      const past = this.#seen.get(t)
      if (past)
        before.push({ k, t, n: past.n, at: Math.floor(past.atMs / 1000) * 1000, r: past.recordId })
      this.#seen.set(t, { bucket: b, n: (past?.n ?? 0) + 1, atMs, recordId })
    }
    if (before.length > 0) Object.assign(stored, { sb: before })
  }

  #addItems(draft: Draft, type: string): void {
    const sinks = sinksOf(routesOf(draft.severity, type))
    const destinations = this.#destinations.filter((id) => sinks.includes(id.split(':')[0]!))
    const { random } = this.#options
    const waits =
      draft.atMs > this.#nowMs - 7 * dayMs && random.chance(pendingShare)
        ? random.int(0, destinations.length - 1)
        : -1
    for (const [index, destination] of destinations.entries()) {
      const sink = destination.split(':')[0]!
      this.#writer.bump(`s|${sink}|created`)
      draft.stored.i.push({
        d: destination,
        k: sink,
        q: routesOf(draft.severity, type),
        rk: severityRank(draft.severity),
        sv: draft.severity,
        g: 1,
        st: 'queued',
        n: 0,
        c: draft.atMs,
      } as StoredItem)
      const member = { draft, index }
      if (index === waits) this.#keepWaiting(member)
      else this.#settle(member)
    }
  }

  #settle(member: Member): void {
    const { random, config } = this.#options
    const { draft } = member
    const item = itemOf(member)
    const luck = random.next()
    if (item.k !== 'siem' && luck < 0.08) {
      const [reason, rule] = random.pick([
        ...config.silences.map(({ id }) => ['silence', id] as const),
        ['inhibition', 'ransom-hides-leaks'] as const,
        ['shadow', item.q[0]!] as const,
      ])
      Object.assign(item, { why: reason, by: rule })
      this.#writer.tally(draft.atMs, 'rule', reason, rule, draft.severity)
      return this.#end([member], { outcome: 'suppressed', atMs: draft.atMs, reason, rule })
    }
    if (luck > 0.997) {
      const rule = 'fallback to tickets'
      Object.assign(item, { by: rule })
      return this.#end([member], {
        outcome: 'diverted',
        atMs: draft.atMs + 60_000,
        reason: 'fallback',
        rule,
      })
    }
    if (item.k === 'tickets' || luck > 0.994) {
      const isDead = luck > 0.994
      const outcome = isDead ? 'dead' : 'delivered'
      item.n = isDead ? 5 : 1
      item.h = [
        {
          n: item.n,
          at: draft.atMs + 1_500,
          o: isDead ? 'failed' : 'delivered',
          ...(isDead
            ? { r: random.pick(['timeout', 'rejected', 'server_error']) }
            : { a: 'HTTP 200 ok' }),
          by: 'replica-1',
        },
      ]
      return this.#end([member], { outcome, atMs: draft.atMs + 1_500, reason: item.h[0]!.r })
    }
    draft.open += 1
    this.#open.add(draft)
    this.#gather(item.d, member)
  }

  #gather(destination: string, member: Member): void {
    const { random } = this.#options
    const sink = destination.split(':')[0]!
    const gathering = this.#gatherings.get(destination) ?? {
      size: sink === 'soc' && random.chance(0.001) ? 500 : random.pick(sizes[sink]!),
      members: [],
    }
    gathering.members.push(member)
    this.#gatherings.set(destination, gathering)
    if (gathering.members.length < gathering.size) return
    this.#gatherings.delete(destination)
    this.#send(destination, gathering.members, member.draft.atMs + 2_000)
  }

  /** One frozen message; its members are settled a hundred at a time. */
  #send(destination: string, members: readonly Member[], atMs: number): void {
    const { random, known } = this.#options
    const id = random.hex(40)
    this.#writer.tally(atMs, 'message', destination)
    for (let from = 0; from < members.length; from += 100) {
      const some = members.slice(from, from + 100)
      for (const member of some) {
        const h = [{ n: 1, at: atMs, o: 'delivered', a: 'HTTP 200 ok', by: 'replica-1' }]
        Object.assign(itemOf(member), { b: id, n: 1, h })
      }
      this.#end(some, {
        outcome: 'delivered',
        atMs: Math.min(atMs, this.#nowMs),
        isPart: !destination.startsWith('siem'),
      })
    }
    for (const { draft } of members) {
      draft.open -= 1
      if (draft.open > 0) continue
      this.#open.delete(draft)
      this.#writer.writeRecord(draft)
    }
    const alike = known.messages.get(members.length) ?? []
    if (alike.length < 400) known.messages.set(members.length, [...alike, { id: `b${id}`, atMs }])
  }

  #end(
    members: readonly Member[],
    how: {
      outcome: Outcome
      atMs: number
      reason?: string | undefined
      rule?: string
      isPart?: boolean
    },
  ): void {
    const { outcome, atMs, reason = '', rule = '', isPart = false } = how
    const items = members.map(itemOf)
    const worst = Math.max(...items.map(({ sv }) => severityRank(sv)))
    const waits = members
      .filter((_one, at) => severityRank(items[at]!.sv) === worst)
      .map(({ draft }) => Math.max(0, atMs - draft.visibleMs))
    for (const [at, item] of items.entries()) {
      const { draft, index } = members[at]!
      Object.assign(item, { st: outcome, e: atMs, ...(outcome === 'delivered' && { told: true }) })
      this.#writer.bump(`s|${item.k}|${outcome}`)
      this.#writer.tally(atMs, 'ended', item.d, item.sv, outcome, reason)
      if (outcome === 'delivered')
        this.#writer.tally(atMs, 'told', item.d, item.sv, boundOf(atMs - draft.visibleMs))
      if (outcome === 'dead')
        this.#writer.addTo(['dead', item.k], atMs, `i:${draft.recordId}:${index}:${item.k}`)
    }
    const [{ d, b = '', n }] = items as [StoredItem]
    if (outcome === 'delivered' && b === '') this.#writer.tally(atMs, 'message', d)
    const places = members.map(({ draft, index }) => `${draft.recordId}.${index}`).join(' ')
    const wait = outcome === 'delivered' ? Math.max(...waits) : ''
    const list = [letters[outcome], d, worst, places, wait, n, isPart ? 'p' : '', b, reason, rule]
    while (list.at(-1) === '') list.pop()
    this.#writer.append(['ended'], atMs, ['e', JSON.stringify(list)])
  }

  /** Where something will move it. */
  #keepWaiting(member: Member): void {
    const { draft, index } = member
    const item = itemOf(member)
    const ref = `i:${draft.recordId}:${index}:${item.k}`
    const isHeld = item.k === 'soc'
    if (isHeld) {
      const untilMs = this.#nowMs + 6 * hourMs
      Object.assign(item, { st: 'held', why: 'mute', by: 'night', y: 'night', at: untilMs })
      this.#writer.tally(draft.atMs, 'rule', 'mute', 'night', draft.severity)
      this.#writer.addTo(['collect', 'night'], draft.atMs, ref)
      this.#writer.addTo(['timers'], untilMs, 'c:night:soc')
      this.#writer.setFields(['group', 'night'], {
        kind: 'held',
        about: '{}',
        wait: '0',
        at: String(untilMs),
        opened: String(draft.atMs),
      })
    } else {
      const dueMs = this.#nowMs + this.#options.random.int(hourMs, 3 * hourMs)
      Object.assign(item, {
        st: 'retrying',
        at: dueMs,
        n: 3,
        h: [{ n: 3, at: draft.atMs + 60_000, o: 'failed', r: 'timeout', by: 'replica-1' }],
      })
      this.#writer.addTo(['due', item.k], dueMs, ref)
      if (draft.severity === 'critical')
        this.#writer.addTo(['owed', item.k], draft.atMs, draft.recordId)
    }
    this.#writer.bump(`s|${item.k}|pending|${item.st}`)
    this.#open.add(draft)
    draft.open += 1 // it is written last
  }

  async #quarantine(count: number): Promise<void> {
    const feed = `${this.#ledger.account}-brand`
    for (let i = 0; i < count; i += 1) {
      const id = this.#options.random.hex(24)
      const atMs = this.#nowMs - i * hourMs
      const entry = {
        feed,
        at: atMs,
        problem: 'severity is no text',
        uid: `paste/odd/${id}`,
        raw: `{"severity":${i}}`,
        marks: {},
      }
      this.#writer.setFields(['quarantine'], { [id]: JSON.stringify(entry) })
      this.#writer.setFields(['quarantine-feeds'], { [id]: feed })
      this.#writer.setFields(['quarantine-uids'], { [entry.uid]: id })
      this.#writer.addTo(['quarantine-ages'], atMs, id)
      for (const counter of ['fetched', 'quarantined']) this.#writer.bump(`f|${feed}|${counter}`)
      await this.#writer.drain()
    }
  }

  async #openFeeds(): Promise<void> {
    for (const name of ['brand', 'staff']) {
      const feed = `${this.#ledger.account}-${name}`
      await openFeed(this.#ledger, feed, spanMs)
      const nowMs = String(this.#nowMs)
      this.#writer.setFields(['feed', feed], { success: nowMs, caught_up: nowMs, newest: nowMs })
    }
  }

  #writeSeen(): void {
    const { history } = this.#ledger.retention
    for (const [digest, { bucket, n, atMs, recordId }] of this.#seen) {
      const name = ['seen', String(Math.floor(atMs / history)), String(bucket)]
      this.#writer.setFields(name, { [digest]: `${n} ${Math.floor(atMs / 1000)} ${recordId}` })
    }
  }
}

const letters: Record<Outcome, string> = {
  delivered: 'd',
  dead: 'x',
  suppressed: 's',
  diverted: 'v',
}

function itemOf({ draft, index }: Member): StoredItem {
  return draft.stored.i[index]!
}

function titleOf({ type, identifiers }: ThreatEvent, login: string, host: string): string {
  const said = kinds.find(([own]) => own === type)![2]
  const name = type === 'stealer_log' ? host : identifiers[0]!.name
  return `${said} ${name}, ${login}`.replaceAll('.', '[.]')
}

const whyOf: Readonly<Record<string, string>> = {
  urgent: 'severity>=high',
  watch: 'severity>=medium',
  credentials: 'type="leaked_credential"',
}

function routesOf(severity: Severity, type: string): string[] {
  if (severityRank(severity) >= 4) return ['urgent']
  if (severityRank(severity) >= 3) return ['watch']
  return [type === 'leaked_credential' ? 'credentials' : 'root']
}

const sinksByRoute: Readonly<Record<string, readonly string[]>> = {
  urgent: ['siem', 'soc', 'tickets'],
  watch: ['siem', 'soc'],
  credentials: ['siem', 'leads'],
  root: ['siem'],
}

function sinksOf(routes: readonly string[]): readonly string[] {
  return routes.flatMap((route) => sinksByRoute[route]!)
}

function drawSeverity(random: Random): Severity {
  const luck = random.next()
  return shares.find(([, share]) => luck < share)?.[0] ?? 'info'
}

/** As lib/ledger.lua has them. */
const bounds = [
  1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1800, 3600, 7200, 14400, 28800,
  86400,
]

function boundOf(ms: number): string {
  return String(bounds.find((bound) => ms <= bound * 1000) ?? 'more')
}

/** In order, by day more than at night. */
function* timesOf(nowMs: number, count: number, random: Random): Generator<number> {
  const hours = Math.floor(spanMs / hourMs)
  const weigh = (hour: number): number => (hour % 24 >= 7 && hour % 24 < 19 ? 3 : 1)
  const whole = Array.from({ length: hours }, (_none, hour) => weigh(hour)).reduce(
    (sum, one) => sum + one,
    0,
  )
  let passed = 0
  let drawn = 0
  for (let hour = 0; hour < hours; hour += 1) {
    passed += weigh(hour)
    const here = Math.round((count * passed) / whole) - drawn
    const fromMs = nowMs - (hours - hour) * hourMs
    for (let i = 0; i < here; i += 1) {
      yield Math.floor(fromMs + ((i + random.next()) / here) * (hourMs - 10_000))
    }
    drawn += here
  }
}

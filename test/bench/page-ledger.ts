/**
 * A ledger of many records over 90 days, made by the ledger's own scripts in simulated time: pages are taken in,
 * batches are sent, some items are suppressed, dead, waiting or quarantined. The same seed draws the same ledger.
 */
import type { Config } from '../../src/config/config.ts'
import { advanceClaims, freezeBatch, type Outcome } from '../../src/delivery/claims.ts'
import type { Severity, ThreatEvent } from '../../src/event.ts'
import { destinationLabels } from '../../src/operator/recipients.ts'
import { createKeys } from '../../src/redis/keys.ts'
import type { Redis } from '../../src/redis/client.ts'
import { claimSchema } from '../../src/redis/health.ts'
import { redisNow } from '../../src/redis/scripts.ts'
import { createRandom, type Random } from '../../src/sandbox/options.ts'
import { type AccountLedger, openLedger } from '../../src/store/account-ledger.ts'
import type { RoutedEvent } from '../../src/store/intake.ts'
import { suppressItems } from '../../src/store/pending-items.ts'
import { readItems } from '../../src/store/records.ts'
import { takeIn } from '../support/ledger.ts'
import { ledgerInTime } from '../support/script-clock.ts'

/** What a visitor may ask for. */
export interface Known {
  records: { account: string; id: string; uid: string }[]
  /** Messages by how many events they have. */
  messages: Map<number, { id: string; atMs: number }[]>
  identifiers: string[]
  logins: string[]
  hosts: string[]
}

const dayMs = 86_400_000
/** A little less than the history, so that nothing expires meanwhile. */
const spanMs = 89 * dayMs
const perPage = 50
/** Events of a message, by the sink that sends it. */
const sizes: Readonly<Record<string, readonly number[]>> = {
  siem: [1, 5, 20, 50],
  soc: [1, 2, 5, 20],
  leads: [150],
}

export async function seedLedger(
  redis: Redis,
  config: Config,
  records: number,
): Promise<{ known: Known; ledger: AccountLedger }> {
  const keys = createKeys(config.redis.prefix)
  await claimSchema(redis, keys)
  const ledger = await openLedger({ redis, keys, account: 'main', config: config.ledger })
  const lastMs = await redisNow({ redis })
  const known: Known = { records: [], messages: new Map(), identifiers: [], logins: [], hosts: [] }
  let nowMs = lastMs - spanMs
  const seeder = {
    ledger: ledgerInTime(ledger, () => nowMs),
    random: createRandom(1),
    known,
    destinations: [...destinationLabels(config).keys()],
    waiting: new Map<string, string[]>(),
  }
  const samples = Math.ceil(records / 2_000)
  for (let place = 0; place < records; place += perPage) {
    nowMs = lastMs - spanMs + Math.floor((spanMs * place) / records)
    const drawn = Array.from({ length: Math.min(perPage, records - place) }, (_none, i) =>
      drawEvent(seeder, nowMs, place + i),
    )
    const malformed = place % 1_000 === 0 ? [{ uid: null, problem: 'no uid', raw: `${place}` }] : []
    const accepted = await takeIn(
      seeder.ledger,
      drawn.map(({ routed }) => routed),
      { feed: 'main-brand', malformed, batchWaitMs: 1_000 },
    )
    if (accepted.status !== 'committed') throw new Error(`a page was ${accepted.status}`)
    for (const { ref, k } of accepted.changes) await settle(seeder, k, ref, nowMs > lastMs - dayMs)
    const [{ routed, login, host }] = drawn as [Drawn]
    if ((place / perPage) % samples !== 0) continue
    const { uid } = routed.event
    known.records.push({ account: 'main', id: ledger.fingerprints.recordId(uid), uid })
    known.logins.push(login)
    known.hosts.push(host)
  }
  known.identifiers.push(...identifiers.slice(0, 5))
  // a replica that gives signs: what is judged of a running one is judged
  await redis.hset(keys.shared('generation'), 'confirmed', lastMs + dayMs)
  return { known, ledger }
}

interface Seeder {
  ledger: AccountLedger
  random: Random
  known: Known
  destinations: readonly string[]
  /** By sink, what the next message has. */
  waiting: Map<string, string[]>
}

const identifiers = Array.from({ length: 40 }, (_none, i) => `brand-${i}.example`)
const kinds = ['stealer_log', 'leaked_credential', 'bot', 'forum_post', 'chat_message', 'paste']

function sinkOf(destination: string): string {
  return destination.split(':')[0]!
}

function drawSeverity(random: Random): Severity {
  const luck = random.next()
  if (luck < 0.02) return 'critical'
  if (luck < 0.11) return 'high'
  if (luck < 0.28) return 'medium'
  return luck < 0.55 ? 'low' : 'info'
}

interface Drawn {
  routed: RoutedEvent
  login: string
  host: string
}

function drawEvent({ random, destinations }: Seeder, atMs: number, place: number): Drawn {
  const [type, severity] = [random.pick(kinds), drawSeverity(random)]
  const name = identifiers[Math.floor(40 * random.next() ** 2)]!
  const [login, host] = [`user${random.int(1, 200)}@${name}`, `DESKTOP-${random.int(1, 100)}`]
  const uid = `${type}/source/${place}-${random.hex(6)}`
  const event: ThreatEvent = {
    uid,
    kind: 'event',
    type,
    source: 'source',
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
    highlights: { content: [`fresh access to <mark>${name}</mark>, price on request`] },
  }
  const route = routeOf(severity, type)
  const items = destinations
    .map((destination) => ({ destination, sink: sinkOf(destination), routes: [route] }))
    .filter(({ sink }) => sinksByRoute[route]?.includes(sink))
  const decisions = [{ route, path: ['root', route], why: [] }]
  const title = `Sample: ${host}, ${login}`.replaceAll('.', '[.]')
  const victims = { logins: [login], hosts: [host] }
  return { routed: { event, title, decisions, items, victims, wantsDetail: false }, login, host }
}

const sinksByRoute: Readonly<Record<string, readonly string[]>> = {
  urgent: ['siem', 'soc', 'tickets'],
  watch: ['siem', 'soc'],
  credentials: ['siem', 'leads'],
  root: ['siem'],
}

function routeOf(severity: Severity, type: string): string {
  if (severity === 'critical' || severity === 'high') return 'urgent'
  if (severity === 'medium') return 'watch'
  return type === 'leaked_credential' ? 'credentials' : 'root'
}

/** Suppressed, dead, left waiting in the last day, or sent with others of its destination. */
async function settle(
  { ledger, random, known, destinations, waiting }: Seeder,
  sink: string,
  ref: string,
  mayWait: boolean,
): Promise<void> {
  const luck = random.next()
  if (mayWait && luck < 0.1) return
  if (luck > 0.95) {
    const reason = luck > 0.97 ? 'silence' : 'inhibition'
    await suppressItems(ledger, [{ ref, act: 'suppress', reason, rule: `${reason}-1` }], sink)
    return
  }
  const waitsFor = waiting.get(sink) ?? []
  waiting.set(sink, waitsFor)
  waitsFor.push(ref)
  if (waitsFor.length < random.pick(sizes[sink] ?? [1])) return
  waiting.delete(sink)
  const isDead = luck < 0.003
  const outcome: Outcome = isDead
    ? { outcome: 'dead', reason: 'rejected' }
    : { outcome: 'delivered', answer: 'HTTP 200 ok' }
  const destination = destinations.find((one) => sinkOf(one) === sink)!
  const found = await readItems(ledger, waitsFor)
  const members = found.map((item) => ({ ref: item.ref, ageMs: 0, found: item }))
  const holder = { owner: 'bench', leaseMs: 10_000, by: 'replica-1' }
  await ledger.redis.hset(ledger.key('claims'), `c:${sink}`, 'bench 1')
  const message = await freezeBatch(ledger, holder, { sink, destination, members })
  if (!message) throw new Error('nothing of a batch waits')
  const token = 'bench'
  await advanceClaims(ledger, holder, { begin: [{ ref: message.ref, token }] })
  await advanceClaims(ledger, holder, { settle: [{ ref: message.ref, token, outcome }] })
  const alike = known.messages.get(members.length) ?? []
  const id = `b${message.ref.split(':')[1]}`
  known.messages.set(members.length, [...alike, { id, atMs: message.createdAtMs }].slice(0, 400))
}

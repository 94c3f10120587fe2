/** The demo's account of a run: what the service showed, what the ledger has, what receivers got. */
import type { Sandbox } from '../../sandbox/sandbox.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { readAccounting } from '../../store/accounts.ts'
import { deliveryId, scanRecords } from '../../store/records.ts'
import { formatTable, pluralize } from '../terminal.ts'
import { demoGroups, demoIdentifier } from './config.ts'

export const demoSinks = ['slack', 'email', 'webhook'] as const

type DemoSink = (typeof demoSinks)[number]

type Service = Pick<Sandbox, 'events' | 'credentials'>

/** Uids of all that the service shows to the demo's feeds. */
export function shownUids({ events, credentials }: Service): string[] {
  const isWatched = (groups: readonly number[]): boolean =>
    groups.some((id) => demoGroups.some((group) => group === id))
  return [
    ...events().flatMap(({ uid, groupIds }) => (isWatched(groupIds) ? [uid] : [])),
    ...credentials().flatMap(({ id, identifierIds }) =>
      identifierIds.includes(demoIdentifier) ? [`credential/${id}`] : [],
    ),
  ]
}

/** What one side says of a sink. */
interface Told {
  messages: number
  /** Uids of the events in them. */
  uids: Set<string>
}

export interface DemoAccount {
  /** Distinct uids that the service showed. */
  shown: number
  /** Those of them that the ledger has. */
  found: number
  /** Records of the ledger that the service never showed. */
  foreign: number
  /** Events taken in by a rescan. */
  late: number
  sinks: { sink: DemoSink; ledger: Told; receiver: Told }[]
}

export async function readAccount(
  ledgers: readonly AccountLedger[],
  sandbox: Sandbox,
): Promise<DemoAccount> {
  const [ledger] = ledgers
  if (ledger === undefined) throw new Error('the demo has no ledger')
  const shown = new Set(shownUids(sandbox))
  const taken = new Set<string>()
  const delivered = demoSinks.map((sink) => ({
    sink,
    ids: new Set<string>(),
    uids: new Set<string>(),
  }))
  for await (const { uid, items } of scanRecords(ledger)) {
    taken.add(uid)
    for (const item of items.filter(({ state }) => state === 'delivered')) {
      const own = delivered.find(({ sink }) => sink === item.sink)
      own?.ids.add(deliveryId(item))
      own?.uids.add(uid)
    }
  }
  const { feeds } = await readAccounting(ledger)
  return {
    shown: shown.size,
    found: [...shown].filter((uid) => taken.has(uid)).length,
    foreign: [...taken].filter((uid) => !shown.has(uid)).length,
    late: Object.values(feeds).reduce((sum, feed) => sum + feed.late, 0),
    sinks: delivered.map(({ sink, ids, uids }) => {
      const messages = sandbox.received[sink]
      const named = new Set(messages.flatMap((message) => message.uids))
      return {
        sink,
        ledger: { messages: ids.size, uids },
        receiver: { messages: messages.length, uids: named },
      }
    }),
  }
}

/** One phrase for each way in which the two sides disagree. */
export function findDifferences({ shown, found, foreign, sinks }: DemoAccount): string[] {
  const missing = shown - found
  return [
    ...(missing > 0 ? [`${pluralize(missing, 'event')} that the ledger does not have`] : []),
    ...(foreign > 0 ? [`${pluralize(foreign, 'event')} that the service never showed`] : []),
    ...sinks.flatMap(({ sink, ledger, receiver }) => [
      ...(ledger.messages === receiver.messages
        ? []
        : [`${sink} got ${receiver.messages} messages, the ledger sent ${ledger.messages}`]),
      ...differences(sink, ledger.uids, receiver.uids),
    ]),
  ]
}

/** A message about many events to Slack names only some of them. */
function differences(sink: DemoSink, sent: Set<string>, named: Set<string>): string[] {
  const unsent = [...named].filter((uid) => !sent.has(uid)).length
  const unnamed = sink === 'slack' ? 0 : [...sent].filter((uid) => !named.has(uid)).length
  return [
    ...(unsent > 0
      ? [`${sink} got ${pluralize(unsent, 'event')} that the ledger did not send`]
      : []),
    ...(unnamed > 0 ? [`${sink} lacks ${pluralize(unnamed, 'event')} that the ledger sent`] : []),
  ]
}

export function accountLines(account: DemoAccount, isCutShort = false): string[] {
  const mark = isCutShort ? 'cut short' : 'unaccounted'
  const { shown, found, late, sinks } = account
  return [
    ...formatTable([
      ['RECEIVER', 'MESSAGES IT GOT', 'LEDGER SENT', 'EVENTS NAMED IN THEM', 'LEDGER SENT'],
      ...sinks.map(({ sink, ledger, receiver }) => [
        sink,
        String(receiver.messages),
        String(ledger.messages),
        `${sink === 'slack' ? 'at least ' : ''}${receiver.uids.size}`,
        String(ledger.uids.size),
      ]),
    ]),
    '',
    `the service showed ${pluralize(shown, 'event')}, ${found} accounted for${formatLate(late)}`,
    ...findDifferences(account).map((difference) => `${mark}: ${difference}`),
  ]
}

function formatLate(late: number): string {
  return late === 0 ? '' : `; ${late} came 20 hours late, found by a rescan`
}

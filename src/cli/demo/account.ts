/** The demo's account of a run: what the service showed, what the ledger has, what receivers got. */
import { sampleEvent } from '../../messages/sample.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { readCounts, sinkOfDestination } from '../../store/history/dated-counts.ts'
import { scanRecords } from '../../store/records.ts'
import { formatTable, pluralize } from '../terminal.ts'
import { demoGroups, demoIdentifier } from './config.ts'

export const demoSinks = ['slack', 'pagerduty', 'email', 'webhook'] as const

type DemoSink = (typeof demoSinks)[number]

type Service = Pick<Sandbox, 'events' | 'credentials'>

/** Uids of all that the service shows to the demo's feeds. */
export function shownUids({ events, credentials }: Service): string[] {
  const isWatched = (groups: readonly number[]): boolean =>
    groups.some((id) => Object.values<number>(demoGroups).includes(id))
  return [
    ...events().flatMap(({ uid, groupIds }) => (isWatched(groupIds) ? [uid] : [])),
    ...credentials().flatMap(({ id, identifierIds }) =>
      identifierIds.includes(demoIdentifier) ? [`credential/${id}`] : [],
    ),
  ]
}

/** What a receiver took, without the messages marked TEST, which stand in no ledger. */
function countReceived({ received }: Pick<Sandbox, 'received'>, sink: DemoSink): number {
  const { uid } = sampleEvent(0).event
  return received[sink].filter(({ body, mail }) => !(mail?.text ?? body).includes(uid)).length
}

export interface DemoAccount {
  /** Distinct uids that the service showed. */
  shown: number
  /** Those of them that the ledger has. */
  found: number
  /** Messages: those that the ledger notes as delivered, and those that the receiver took. */
  sinks: { sink: DemoSink; sent: number; got: number }[]
}

/** `period`: of the demo. */
export async function readAccount(
  ledgers: readonly AccountLedger[],
  sandbox: Sandbox,
  period: { fromMs: number; toMs: number },
): Promise<DemoAccount> {
  const shown = new Set(shownUids(sandbox))
  const sent = new Map<string, number>()
  let found = 0
  for (const ledger of ledgers) {
    for await (const { uid } of scanRecords(ledger)) if (shown.has(uid)) found += 1
    for (const one of await readCounts(ledger, { by: 'day', ...period })) {
      if (one.kind !== 'message') continue
      const sink = sinkOfDestination(one.destination)
      sent.set(sink, (sent.get(sink) ?? 0) + one.count)
    }
  }
  return {
    shown: shown.size,
    found,
    sinks: demoSinks.map((sink) => ({
      sink,
      sent: sent.get(sink) ?? 0,
      got: countReceived(sandbox, sink),
    })),
  }
}

/** One phrase for each way in which the sides disagree. */
export function findDifferences({ shown, found, sinks }: DemoAccount): string[] {
  return [
    ...(shown > found
      ? [`${pluralize(shown - found, 'event')} that the ledger does not have`]
      : []),
    ...sinks
      .filter(({ sent, got }) => sent !== got)
      .map(({ sink, sent, got }) => `${sink} got ${got} messages, the ledger sent ${sent}`),
  ]
}

export function accountLines(account: DemoAccount, isCutShort = false): string[] {
  const mark = isCutShort ? 'cut short' : 'unaccounted'
  const { shown, found, sinks } = account
  return [
    ...formatTable([
      ['RECEIVER', 'MESSAGES IT GOT', 'LEDGER SENT'],
      ...sinks.map(({ sink, sent, got }) => [sink, String(got), String(sent)]),
    ]),
    '',
    `the service showed ${pluralize(shown, 'event')}, ${found} accounted for`,
    ...findDifferences(account).map((difference) => `${mark}: ${difference}`),
  ]
}

/** The demo's account of a run: what the service showed, what the ledger has, what receivers got. */
import type { Sandbox } from '../../sandbox/sandbox.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { deliveryId, scanRecords } from '../../store/records.ts'
import { formatTable, pluralize } from '../terminal.ts'
import { demoGroups, demoIdentifier } from './config.ts'

export const demoSinks = ['slack', 'email', 'webhook'] as const

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

export interface DemoAccount {
  /** Distinct uids that the service showed. */
  shown: number
  /** Those of them that the ledger has. */
  found: number
  /** Messages: those that the ledger notes as delivered, and those that the receiver took. */
  sinks: { sink: (typeof demoSinks)[number]; sent: number; got: number }[]
}

export async function readAccount(ledger: AccountLedger, sandbox: Sandbox): Promise<DemoAccount> {
  const shown = new Set(shownUids(sandbox))
  const sent = new Map(demoSinks.map((sink) => [sink as string, new Set<string>()]))
  let found = 0
  for await (const { uid, items } of scanRecords(ledger)) {
    if (shown.has(uid)) found += 1
    for (const item of items) {
      if (item.state === 'delivered') sent.get(item.sink)?.add(deliveryId(item))
    }
  }
  return {
    shown: shown.size,
    found,
    sinks: demoSinks.map((sink) => ({
      sink,
      sent: sent.get(sink)?.size ?? 0,
      got: sandbox.received[sink].length,
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

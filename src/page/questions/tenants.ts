/** A row for each account, the worst off first. */
import { z } from 'zod'
import { isProblem } from '../../operator/probes/probe.ts'
import type { LedgerState } from '../../operator/ledger-state.ts'
import { countedSeverities, type SeverityCounts, severityCounts } from '../../operator/status.ts'
import { redisNow } from '../../redis/scripts.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { sumPending } from '../../store/accounts.ts'
import { readCounts } from '../../store/history/dated-counts.ts'
import { readQuota } from '../../upstream/rate-limits.ts'
import type { Asker } from '../asker.ts'
import { field, question } from '../question.ts'
import { addressOf } from '../output/urls.ts'
import { badCursor } from '../listing.ts'
import { readState } from './state.ts'

export const tenantsQuestion = question({
  path: '/tenants',
  summary: 'a row for each account: lag, what waits, told today, key, quota, problems',
  query: z.object({ text: field.text('In the name.'), cursor: field.cursor, limit: field.limit }),
  isShared: true,
  async ask(asker, { text, cursor, limit }) {
    const from = readOffset(cursor)
    const state = await readState(asker)
    const ranked = rankAccounts(state).filter(({ account }) =>
      account.toLowerCase().includes((text ?? '').toLowerCase()),
    )
    const shown = ranked.slice(from, from + limit)
    const rows = shown.map((row) => describeTenant(asker, state, row))
    const isLast = from + limit >= ranked.length
    const next = isLast ? null : addressOf('/tenants', { text, cursor: from + limit, limit })
    return { rows: await Promise.all(rows), filters: { text: text ?? null }, next }
  },
})

/** Rows change their places between requests: a place is enough of a cursor. Throws PageError. */
function readOffset(cursor = '0'): number {
  if (/^\d{1,6}$/.test(cursor)) return Number(cursor)
  throw badCursor()
}

interface Ranked {
  account: string
  own: LedgerState['problems']
}

/** Problems before warnings, then by name. */
export function rankAccounts({ accounts, feeds, problems }: LedgerState): Ranked[] {
  const accountOf = new Map(feeds.map(({ feed }) => [feed.name, feed.account]))
  const byAccount = Map.groupBy(problems, ({ check, subject }) => {
    if (check === 'feed') return accountOf.get(subject)
    return check === 'account' || check === 'accounting' ? subject : undefined // a sink is of all
  })
  const weigh = ({ status, stops }: LedgerState['problems'][number]): number => {
    if (status === 'warning') return 1
    return stops ? 1e4 : 1e2
  }
  const rank = ({ own }: Ranked): number => own.reduce((sum, one) => sum + weigh(one), 0)
  return accounts
    .map(({ name }) => ({ account: name, own: byAccount.get(name) ?? [] }))
    .toSorted((one, other) => rank(other) - rank(one) || (one.account < other.account ? -1 : 1))
}

async function describeTenant(
  asker: Asker,
  { accounts, feeds }: LedgerState,
  { account, own }: Ranked,
) {
  const ledger = asker.ledgers.find((one) => one.account === account)
  const known = accounts.find(({ name }) => name === account)
  const lags = feeds.flatMap(({ feed, lagMs }) => (feed.account === account ? (lagMs ?? []) : []))
  const quota = await readQuota(asker.store.redis, asker.store.keys, account)
  return {
    account,
    url: addressOf('/', { account }),
    lag_s: lags.length === 0 ? null : Math.max(...lags) / 1000,
    feeds: feeds.filter(({ feed }) => feed.account === account).length,
    pending: sumPending({ pending: known?.pending ?? {} }),
    dead: known?.deadLetters ?? 0,
    told_today: await readToldToday(ledger),
    key: keyState(known?.isConfigured, known?.trouble !== undefined),
    quota: quota === undefined ? null : `${quota.remaining} searches`,
    problems: own.filter(isProblem).length,
    warnings: own.filter((one) => !isProblem(one)).length,
    worst: own[0]?.detail ?? null,
  }
}

function keyState(isConfigured: boolean | undefined, isRefused: boolean): string {
  if (isConfigured !== true) return 'not configured'
  return isRefused ? 'refused' : 'ok'
}

/** Since midnight in UTC. */
async function readToldToday(ledger: AccountLedger | undefined): Promise<SeverityCounts> {
  const told = new Map<string, number>(countedSeverities.map((word) => [word, 0]))
  if (ledger === undefined) return severityCounts(told)
  const nowMs = await redisNow(ledger)
  for (const one of await readCounts(ledger, { by: 'day', fromMs: nowMs, toMs: nowMs })) {
    if (one.kind === 'ended' && one.outcome === 'delivered')
      told.set(one.severity, (told.get(one.severity) ?? 0) + one.count)
  }
  return severityCounts(told)
}

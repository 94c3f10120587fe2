import type { NoWindow } from '../audit/audit-window.ts'
import type { AuditResult, Finding } from '../audit/finding.ts'
import type { PolledFeed } from '../feeds/polled-feed.ts'
import type { Terminal } from './terminal.ts'
import { counted, harmless, isoTime, timeInWords } from './words.ts'

export type AuditReport = { feed: PolledFeed } & (
  | { why: NoWindow }
  | { failed: string }
  /** `left`: what is missing still after a repair; undefined: none was asked for. */
  | { result: AuditResult; left?: Finding[] }
)

/** Named in lines for people; JSON has all of them. */
const shownFindings = 50

const whys = {
  never_taken_in: 'never taken in',
  record_gone: 'its record is gone',
  awaited: 'visible perhaps since the feed last passed its place; the next sweep takes it in',
} as const

export function auditJson(report: AuditReport): Record<string, unknown> {
  const { feed } = report
  if ('failed' in report) return { feed: feed.name, compared: false, failed: report.failed }
  if ('why' in report) return { feed: feed.name, compared: false, why: report.why }
  const { result, left } = report
  return {
    feed: feed.name,
    compared: true,
    from: isoTime(result.fromMs),
    to: isoTime(result.toMs),
    shown: result.shown,
    accounted: result.accounted,
    missing: result.missing.map(findingJson),
    quarantined: result.quarantined,
    malformed_missing: result.malformed.length,
    awaited: result.awaited.map(findingJson),
    extra: result.extra.map(({ uid, firstSeenMs, closed }) => ({
      uid,
      first_seen: isoTime(firstSeenMs),
      closed: closed ?? null,
    })),
    ...(left && { still_missing: left.map(findingJson) }),
  }
}

function findingJson({ uid, createdAtMs, why }: Finding): Record<string, unknown> {
  return { uid, created: isoTime(createdAtMs), why }
}

export function auditLines(terminal: Terminal, report: AuditReport): string[] {
  const { feed } = report
  const head = terminal.paint('bold', feed.name)
  if ('failed' in report) {
    return [`${head}: ${terminal.paint('red', 'not compared')}: ${harmless(report.failed, 1_000)}`]
  }
  if ('why' in report) return [`${head}: not compared: ${whyNot[report.why]}`]
  const { result, left } = report
  const { fromMs, toMs, shown, accounted, quarantined, missing, malformed, awaited } = result
  const lost = missing.length + malformed.length
  const window = `${timeInWords(fromMs)} to ${timeInWords(toMs)}`
  return [
    `${head}: ${window}: ${counted(shown, 'event')} shown, ${accounted} in the ledger, ${verdict(terminal, lost, quarantined)}`,
    ...quarantineLines(feed.name, quarantined),
    ...listed(missing, 'missing'),
    ...malformedLines(malformed.length),
    ...listed(awaited, 'awaited'),
    ...extraLines(result.extra),
    ...leftLines(lost, left),
  ]
}

/** What cannot be read is in safe hands, and nobody was told of it: that never reads as "nothing is missing". */
function verdict(terminal: Terminal, lost: number, quarantined: number): string {
  if (lost > 0) return terminal.paint('red', `${lost} missing`)
  return quarantined > 0
    ? terminal.paint('yellow', `${quarantined} could not be read`)
    : terminal.paint('green', 'nothing is missing')
}

function quarantineLines(feed: string, count: number): string[] {
  if (count === 0) return []
  return [
    `  quarantined  ${counted(count, 'item')}, not read and not sent: tocsin quarantine list --feed ${feed}`,
  ]
}

function malformedLines(count: number): string[] {
  if (count === 0) return []
  return [
    `  missing  ${counted(count, 'malformed item')}: not in the quarantine; --repair sets them aside`,
  ]
}

function leftLines(lost: number, left: readonly Finding[] | undefined): string[] {
  if (left === undefined || lost === 0) return []
  if (left.length === 0) return ['  all of it is taken in; a running daemon delivers it']
  return [`  ${lost - left.length} taken in, ${left.length} still missing: run it again`]
}

function listed(findings: readonly Finding[], word: string): string[] {
  const lines = findings.slice(0, shownFindings).map(({ uid, createdAtMs, why }) => {
    return `  ${word}  ${harmless(uid)}, created ${timeInWords(createdAtMs)}: ${whys[why]}`
  })
  return [...lines, ...more(findings.length)]
}

function extraLines(extra: AuditResult['extra']): string[] {
  const lines = extra.slice(0, shownFindings).map(({ uid, firstSeenMs, closed }) => {
    const what =
      closed === undefined ? 'no longer shown by the service' : `${closed} at the service`
    return `  extra  ${harmless(uid)}, taken in ${timeInWords(firstSeenMs)}: ${what}`
  })
  return [...lines, ...more(extra.length)]
}

function more(count: number): string[] {
  return count > shownFindings ? [`  … and ${count - shownFindings} more: --output json`] : []
}

const whyNot: Record<NoWindow, string> = {
  reports: 'each report is asked for until it is there',
  not_read: 'the feed was not read to its end yet, or not since it was changed or rewound',
  behind: 'the feed was last read to its end before all that is to be compared; tocsin feeds list',
}

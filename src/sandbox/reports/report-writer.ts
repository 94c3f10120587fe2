/** Writes a report about events that the sandbox has, in plain counts and their own words. */
import type { SandboxEvent } from '../history/sandbox-event.ts'
import { createRandom, hashOf, type Random } from '../random.ts'
import type { ReportRequest, SandboxReport } from './sandbox-report.ts'

const formatTypes = ['simple_summary', 'expanded_summary', 'finished_intel_standard'] as const
const intelTypes = ['unit_summary_based', 'custom_intel'] as const
const severities = ['critical', 'high', 'medium', 'low', 'info']

const mostEvents = 20
const mostHighlights = 5
const wordsPerMinute = 200

/** `events`: all that it is about. The same request and events make the same report. */
export function writeReport(
  request: ReportRequest,
  events: readonly SandboxEvent[],
): SandboxReport {
  const random = createRandom(hashOf(request.id))
  const told = events.toSorted(worstAndNewestFirst).slice(0, mostEvents)
  const types = countsOf(events.map(({ type }) => type))
  const summary = summaryOf(request, events, types)
  const content = contentOf(request, { summary, types, told })
  return {
    id: request.reportId,
    title: request.title,
    subtitle: sometimesNull(random, `${events.length} events, ${types.length} kinds`),
    summary,
    content,
    tags: [...types.slice(0, 3).map(([type]) => type), ...worstOf(told)],
    highlights: told.slice(0, mostHighlights).map(lineOf),
    relatedUids: told.map(({ uid }) => uid),
    createdAtMs: request.readyAtMs,
    publishedAtMs: sometimesNull(random, request.readyAtMs),
    tenantId: sometimesNull(random, request.tenantId),
    organizationId: sometimesNull(random, request.organizationId),
    formatType: random.pick(formatTypes),
    intelType: random.pick(intelTypes),
    presetUid: sometimesNull(random, `preset-${random.hex(8)}`),
    readingMinutes: Math.ceil(content.split(/\s+/).length / wordsPerMinute),
  }
}

/** What the service may leave out (facts.md 8). */
function sometimesNull<Value>(random: Random, value: Value): Value | null {
  return random.chance(0.2) ? null : value
}

function summaryOf(
  { question }: ReportRequest,
  events: readonly SandboxEvent[],
  types: readonly [string, number][],
): string {
  const asked = question === null ? '' : `The question was: ${question}\n\n`
  if (events.length === 0) return `${asked}Nothing was seen in this time.`
  const times = events.map(({ createdAtMs }) => createdAtMs)
  const first = times.reduce((left, right) => Math.min(left, right))
  const last = times.reduce((left, right) => Math.max(left, right))
  const subjects = countsOf(events.flatMap((event) => event.identifiers.map(({ name }) => name)))
  return [
    `${asked}Between ${dayOf(first)} and ${dayOf(last)}, ${events.length} events were seen: ${inWords(types)}.`,
    subjects.length === 0 ? 'None names an asset.' : `They concern ${inWords(subjects)}.`,
  ].join('\n\n')
}

function contentOf(
  { title }: ReportRequest,
  parts: { summary: string; types: readonly [string, number][]; told: readonly SandboxEvent[] },
): string {
  const rows = parts.types.map(([type, count]) => `| ${type} | ${count} |`)
  return [
    `# ${title}`,
    '## Summary',
    parts.summary,
    '## Activity by kind',
    ['| Kind | Events |', '|---|---|', ...rows].join('\n'),
    '## Events',
    parts.told.map((event) => `- ${lineOf(event)} (\`${event.uid}\`)`).join('\n'),
  ].join('\n\n')
}

/** In the event's own words, which an attacker may have written. */
function lineOf(event: SandboxEvent): string {
  const [words = ''] = Object.values(event.highlights).flat()
  const said = words.replaceAll(/<\/?mark>/g, '').replaceAll(/\s+/g, ' ')
  const about = event.identifiers.map(({ name }) => name).join(', ') || 'nothing watched'
  return `${event.severity}: ${event.type} about ${about}${said && `: ${said.slice(0, 120)}`}`
}

function worstOf(told: readonly SandboxEvent[]): string[] {
  return told.slice(0, 1).map(({ severity }) => severity)
}

function worstAndNewestFirst(left: SandboxEvent, right: SandboxEvent): number {
  return rankOf(left) - rankOf(right) || right.createdAtMs - left.createdAtMs
}

/** A word that no list has ranks with the worst. */
function rankOf({ severity }: SandboxEvent): number {
  return Math.max(0, severities.indexOf(severity))
}

/** The most frequent first. */
function countsOf(words: readonly string[]): [string, number][] {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return [...counts].toSorted(([, left], [, right]) => right - left)
}

function inWords(counts: readonly [string, number][]): string {
  return counts
    .slice(0, 8)
    .map(([word, count]) => `${word} (${count})`)
    .join(', ')
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

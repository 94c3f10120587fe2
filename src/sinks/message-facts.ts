import { formatTime, type Fact } from '../messages/description.ts'
import { unverifiedLinkLabel, type Message } from '../messages/message.ts'

/** The first facts say what, whose and where; what of ours it matched follows them. */
const factsBeforeMatched = 3

/** Every named value that a person reads, in order: what the type tells, what matched, when, whence. */
export function factsForPeople(message: Message): Fact[] {
  const { identifiers, tags, createdAtMs, matchedAtMs, fetchedAtMs, account, feed } = message
  const { unverifiedLink } = message
  return [
    ...message.facts.slice(0, factsBeforeMatched),
    ...listed('Matched', identifiers),
    ...message.facts.slice(factsBeforeMatched),
    ...listed('Tags', tags),
    ...(unverifiedLink === null
      ? []
      : [{ label: unverifiedLinkLabel, value: unverifiedLink, kind: 'code' as const }]),
    ...timed('Created at', createdAtMs),
    ...timed('Matched at', matchedAtMs),
    ...timed('Fetched at', fetchedAtMs, lateness(matchedAtMs ?? createdAtMs, fetchedAtMs)),
    { label: 'Feed', value: `${feed} (account ${account})`, kind: 'text' },
  ]
}

function listed(label: string, names: readonly string[]): Fact[] {
  return names.length === 0 ? [] : [{ label, value: names.join(', '), kind: 'text' }]
}

function timed(label: string, atMs: number | null, remark = ''): Fact[] {
  const value = atMs === null ? null : formatTime(atMs)
  return value === null ? [] : [{ label, value: value + remark, kind: 'time' }]
}

function lateness(sinceMs: number | null, atMs: number): string {
  const minutes = sinceMs === null ? 0 : Math.round((atMs - sinceMs) / 60_000)
  if (!(minutes > 0)) return ''
  if (minutes < 120) return ` (${minutes} min later)`
  return minutes < 2880
    ? ` (${Math.round(minutes / 60)} h later)`
    : ` (${Math.round(minutes / 1440)} days later)`
}

/** What a message says of an event beside its content: who gets it too, and what was seen before. */
import { type Fact, formatTime } from './types/description.ts'
import { sanitizeLine } from './sanitize.ts'

/** What is known of an event beside its content; a `MessageSubject` has it. */
export interface Related {
  /** Other recipients for which it was routed: names of sinks, addresses of recipients. */
  otherRecipients?: readonly string[] | undefined
  seenBefore?: readonly SeenTerm[] | undefined
}

/** A login or host of the event that earlier events named. */
interface SeenTerm {
  kind: 'login' | 'host'
  /** In how many of them. */
  times: number
  lastMs: number
}

/** In number, of other recipients. */
const maxNamed = 3

interface Limits {
  /** Of a name, in code points. */
  name: number
  timeZone: string
}

/** A line for each that there is something to say of. */
export function relatedFacts(
  { otherRecipients = [], seenBefore = [] }: Related,
  { name, timeZone }: Limits,
): Fact[] {
  const names = otherRecipients.map((one) => sanitizeLine(one, name))
  return [
    { label: 'Seen before', value: formatSeen(seenBefore, timeZone) },
    { label: 'Also routed to', value: formatNames(names) },
  ].flatMap(({ label, value }) => (value === '' ? [] : [{ label, value, kind: 'text' as const }]))
}

function formatNames(names: readonly string[]): string {
  const more = names.length - maxNamed
  const shown = names.slice(0, maxNamed).join(', ')
  return more > 0 ? `${shown} and ${more} more` : shown
}

/** "same login in 3 events, last 2026-10-01 12:00 UTC; same host in 1 event, last …" */
function formatSeen(seen: readonly SeenTerm[], timeZone: string): string {
  const kinds = ['login', 'host'] as const
  return kinds
    .flatMap((kind) => {
      const [most] = seen.filter((one) => one.kind === kind).toSorted(compareSeen)
      const last = most && formatTime(most.lastMs, timeZone)
      if (!most || !last) return []
      const events = most.times === 1 ? '1 event' : `${most.times} events`
      return [`same ${kind} in ${events}, last ${last}`]
    })
    .join('; ')
}

/** Of several logins the one that was seen most often, then the one that was seen last. */
function compareSeen(a: SeenTerm, b: SeenTerm): number {
  return b.times - a.times || b.lastMs - a.lastMs
}

import type { Received } from '../sandbox/catchers/received.ts'
import type { CommonOptions, Context } from './context.ts'
import { harmless, timeInWords } from './words.ts'

/** One line for each message that a pretend sink took. */
export function showReceived(
  { terminal }: Context,
  { output }: CommonOptions,
  message: Received,
): void {
  const { sink, id, atMs, to, uids } = message
  if (output === 'json') {
    terminal.print(JSON.stringify({ at: new Date(atMs).toISOString(), sink, to, id, uids }))
    return
  }
  const place = `${sink.padEnd(7)} ${harmless(to, 60)}`
  terminal.print(
    `${terminal.paint('dim', timeInWords(atMs))} ${place}: ${harmless(subjectOf(message), 160)}`,
  )
}

function subjectOf({ mail, json, uids, id }: Received): string {
  if (mail) return mail.subject
  const text = typeof json === 'object' && json !== null && 'text' in json ? json.text : undefined
  if (typeof text === 'string') return text
  return uids.length > 0 ? uids.join(', ') : (id ?? 'a message without an id')
}

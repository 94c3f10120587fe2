/** What an act is, and what it leaves, in words of commands, the page and the API. */
import type { ActCounts } from '../../delivery/item-acts.ts'
import { pluralize } from '../../lib/errors.ts'

/** By its path; `$1` is the part in brackets, `items` how many it touches. */
const patterns: readonly (readonly [path: RegExp, words: string])[] = [
  [/^\/items\/resend$/, 'send items again'],
  [/^\/items\/move$/, 'move items to another sink'],
  [/^\/items\/discard$/, 'give up items'],
  [/^\/sinks\/([^/]+)\/test$/, 'test sink $1'],
  [/^\/sinks\/([^/]+)\/flush$/, 'send the digest of sink $1'],
  [/^\/(sink|feed)s\/([^/]+)\/(pause|resume)$/, '$3 $1 $2'],
  [/^\/feeds\/([^/]+)\/rewind$/, 'rewind feed $1'],
  [/^\/accounts\/([^/]+)\/discard$/, 'discard account $1'],
  [/^\/reload$/, 'reload the configuration'],
  [/^\/silences$/, 'make a silence'],
  [/^\/silences\/([^/]+)$/, 'make silence $1'],
  [/^\/silences\/([^/]+)\/expire$/, 'end silence $1'],
  [/^\/events\/([^/]+)\/([^/]+)\/triage$/, 'ignore or remediate event $2, or undo that'],
  [/^\/events\/([^/]+)\/([^/]+)\/note$/, 'write the note of event $2'],
]

/** The path itself where none fits. */
export function actWords(act: string, items: number): string {
  const [path, words = act] = patterns.find(([one]) => one.test(act)) ?? []
  const said = path ? act.replace(path, words) : words
  return said.replace(/\bitems\b/, pluralize(items, 'item'))
}

/** Why an item is left as it is. */
export const leftWords: Record<Exclude<keyof ActCounts, 'done'>, string> = {
  busy: 'in a message on its way just now: try again in a minute',
  other: 'changed by somebody else meanwhile',
  no_payload: 'the content is no longer kept (retention.payload)',
  no_recipient: 'the recipient is no longer configured',
}

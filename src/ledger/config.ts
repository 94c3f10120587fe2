import { duration } from '../runtime/config-fields.ts'
import { section } from '../runtime/config-section.ts'
import { size } from '../runtime/config-size.ts'

export interface LedgerConfig {
  /** How long a mark is remembered after its last sight. */
  dedupeHorizonMs: number
  /** How long the payload is kept after the last item became final. */
  payloadRetentionMs: number
  /** How long the story is kept after the last item became final. */
  storyRetentionMs: number
  /** What records and payloads may take together; only what is settled makes room. */
  maxBytes: number
}

/** The ledger's two sections of the file; `ledgerConfig` puts them together. */
export const ledgerSections = {
  dedupe: section(
    {
      horizon: duration('How long an event is remembered after it was last seen.').prefault('90d'),
    },
    { describe: 'How long a repeated event is recognised.' },
  ).prefault({}),
  retention: section(
    {
      payload: duration('How long the content of an event is kept once it is settled.').prefault(
        '14d',
      ),
      story: duration('How long the record of what happened to it is kept.').prefault('90d'),
      max_bytes: size(
        'What is kept of all events together; the oldest settled ones go first.',
        '1MiB',
      ).prefault('1GiB'),
    },
    { describe: 'How long settled events are kept.' },
  ).prefault({}),
}

export function ledgerConfig(file: {
  dedupe: { horizon: number }
  retention: { payload: number; story: number; max_bytes: number }
}): LedgerConfig {
  return {
    dedupeHorizonMs: file.dedupe.horizon,
    // content without its story is of no use to anybody
    payloadRetentionMs: Math.min(file.retention.payload, file.retention.story),
    storyRetentionMs: file.retention.story,
    maxBytes: file.retention.max_bytes,
  }
}

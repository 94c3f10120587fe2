import { severities, type Severity } from '../events/severity.ts'
import { flag, textField, wholeNumber, word } from '../runtime/config-fields.ts'
import { section } from '../runtime/config-section.ts'
import { timeZone } from '../runtime/config-time-zone.ts'
import { cronProblem } from '../runtime/cron-schedule.ts'

/** How a sink for people collects its events into messages on a schedule. */
export interface DigestConfig {
  /** Five fields, in local time of `timeZone`. */
  cron: string
  /** IANA name. */
  timeZone: string
  /** This severity and above, unknown words included, goes at once; null: nothing does. */
  immediate: Severity | null
  /** A digest with nothing to tell goes out too. */
  sendsEmpty: boolean
  /** Events that one digest shows; it counts all of them. */
  maxItems: number
}

const nothingAtOnce = 'none'

/** A sink's `digest`. */
export const digestConfig = section(
  {
    schedule: textField({
      describe: 'When it goes out: a cron of five fields, at least 15 minutes apart.',
      remedy: "write a cron of five fields, such as '0 8,16 * * *'",
      expected: 'a cron',
      examples: ['0 8,16 * * *', '0 8 * * mon-fri'],
      parse: (input) => cronProblem(input) ?? input.trim(),
    }),
    timezone: timeZone('Zone of the local times of the schedule, such as Europe/Zurich.'),
    immediate: word(
      [nothingAtOnce, ...severities],
      'This severity and above goes at once, unknown ones too; none: nothing does.',
    ).prefault(nothingAtOnce),
    // An empty digest is the sign of life of a quiet week, and it states what was read until when.
    send_empty: flag('Send it when there is nothing to tell, too.').prefault(true),
    // 500: at 200 bytes an event, what fits before Gmail clips a message (102 kB).
    max_items: wholeNumber({
      describe: 'Events that one digest shows; it counts all.',
      min: 1,
      max: 500,
    }).prefault(50),
  },
  { describe: 'Collects events into messages on a schedule. Default: each goes at once.' },
).transform((file): DigestConfig => ({
  cron: file.schedule,
  timeZone: file.timezone,
  immediate: file.immediate === nothingAtOnce ? null : file.immediate,
  sendsEmpty: file.send_empty,
  maxItems: file.max_items,
}))

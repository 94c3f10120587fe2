/** What the types of sinks share: digests, failover, and what a type says of its sinks. */
import type { z } from 'zod'
import { severities } from '../event.ts'
import {
  duration,
  flag,
  name,
  type Refusal,
  section,
  textField,
  timeZone,
  wholeNumber,
  word,
} from '../lib/config/config-fields.ts'
import type { Clock } from '../lib/clock.ts'
import { cronProblem } from '../lib/cron-schedule.ts'
import type { Logger } from '../lib/logger.ts'
import { type Outbound, outboundKeys, readOutbound } from '../lib/config/outbound-config.ts'
import { requiredSecretFromSection, type Secret } from '../lib/config/secret.ts'
import {
  type MessageTemplates,
  messageTemplatesConfig,
  type TemplateParts,
} from './templates/template-config.ts'

const noImmediate = 'none'

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
    timezone: timeZone('Zone of the local times of the schedule, such as Europe/Zurich.').prefault(
      'UTC',
    ),
    immediate: word(
      [noImmediate, ...severities],
      'This severity and above goes at once, unknown ones too; none: nothing does.',
    ).prefault(noImmediate),
    // An empty digest is the sign of life of a quiet week, and it says until when the feeds were
    // read.
    send_empty: flag('Send it when there is nothing to tell, too.').prefault(true),
    // 500: at 200 bytes an event, what fits before Gmail clips a message (102 kB).
    max_items: wholeNumber({
      describe: 'Events that one digest shows; it counts all.',
      min: 1,
      max: 500,
    }).prefault(50),
  },
  { describe: 'Collects events into messages on a schedule. Default: each goes at once.' },
).transform((file) => ({
  /** Five fields, in local time of `timeZone`. */
  cron: file.schedule,
  timeZone: file.timezone,
  /** Events of at least this severity, unknown words included, are sent at once; null: none. */
  immediate: file.immediate === noImmediate ? null : file.immediate,
  sendsEmpty: file.send_empty,
  maxItems: file.max_items,
}))

/** How a sink for people collects its events into messages on a schedule. */
type DigestConfig = z.output<typeof digestConfig>

/** What happens to a sink's items when it takes none; the same keys for every type. */
export interface FailoverConfig {
  /** The sink that gets what this one cannot be sent; undefined: items wait here. */
  fallback: string | undefined
  /** How long the circuit must have been open before items are rerouted. */
  fallbackAfterMs: number
}

export const commonKeys = {
  excerpts: word(
    ['never', 'safe'],
    'never: show facts alone; safe: quote texts without a sign of a secret. Default: safe.',
  ).optional(),
  fallback: name('The sink that gets what this one cannot be sent.').optional(),
  fallback_after: duration(
    'How long the circuit is open before the fallback gets what waits.',
  ).prefault('5m'),
}

export interface CommonConfig extends FailoverConfig {
  /** Which texts of events it shows: none, or those without a sign of a secret. */
  excerpts: 'never' | 'safe' | undefined
}

export function readCommon(file: z.output<z.ZodObject<typeof commonKeys>>): CommonConfig {
  return { excerpts: file.excerpts, fallback: file.fallback, fallbackAfterMs: file.fallback_after }
}

/** For sinks whose readers are people. */
export const readerKeys = {
  time_zone: timeZone(
    'Zone of the times in messages, beside UTC. Default: UTC; in digests the zone of the schedule.',
  ).optional(),
  templates: messageTemplatesConfig.optional(),
}

/** A sink of the configuration. */
export type NamedSink<Schema extends z.ZodType> = z.output<Schema> & { name: string }

/** What a sink of a schema is made of: its settings without those of failover; undefined ones may be left out. */
export type SinkSettings<Schema extends z.ZodType> = LeaveOut<
  Omit<z.output<Schema>, keyof FailoverConfig>
> & { name: string }

type LeaveOut<T> = {
  [Key in keyof T as undefined extends T[Key] ? never : Key]: T[Key]
} & { [Key in keyof T as undefined extends T[Key] ? Key : never]?: T[Key] }

/** The keys of a sink that posts to a chat, after `url` and `limit`. */
export const chatKeys = {
  allow_private: flag('Let the address be private or loopback, over http too.').prefault(false),
  digest: digestConfig.optional(),
  reveal: flag('Show leaked credentials in clear.').prefault(false),
  ...readerKeys,
  ...commonKeys,
  ...outboundKeys,
}

interface ChatFile<Type> extends z.output<z.ZodObject<typeof chatKeys>> {
  type: Type
  url?: string | undefined
  url_file?: string | undefined
  limit: number
}

/** A sink that posts to a chat, by the address of a webhook, which lets whoever has it post. */
interface Chat<Type> extends Outbound, CommonConfig {
  type: Type
  url: Secret
  limitPerSecond: number
  allowPrivate: boolean
  batch: undefined
  digest: DigestConfig | undefined
  reveal: boolean
  timeZone: string | undefined
  templates: MessageTemplates | undefined
}

export function readChat<Type>(file: ChatFile<Type>): Chat<Type> {
  return {
    type: file.type,
    url: requiredSecretFromSection(file, 'url'),
    limitPerSecond: file.limit,
    allowPrivate: file.allow_private,
    batch: undefined,
    digest: file.digest,
    reveal: file.reveal,
    timeZone: file.time_zone,
    templates: file.templates,
    ...readOutbound(file),
    ...readCommon(file),
  }
}

export type Audience = 'people' | 'machines'

/** What a type of sinks says about one of its kind. */
export interface SinkType<Config> {
  /** Reads one sink of the file; its key is its name. */
  config: z.core.$ZodTypeDiscriminable
  /** People get groups, digests and what they can act on; machines get every event, one by one. */
  audience: Audience
  /** Where it sends; when this changes, what was learned of the sink no longer holds. */
  address(config: Config): Secret
  /** What is allowed and probably not meant; `key`: where in the section, undefined: as a whole. */
  warn?(config: Config): (Refusal & { key?: string })[]
}

export interface SinkParts extends TemplateParts {
  logger: Logger
  clock: Clock
}

import { randomInt } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { writeSilence } from '../ledger/silence-store.ts'
import {
  isSilenceProblem,
  newSilence,
  silenceText,
  type Silence,
  type SilenceProblem,
} from '../routing/silences.ts'
import { duration } from '../runtime/config-fields.ts'
import { CommandError } from './command-error.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { parseEnd } from './moment.ts'
import { redisNow, withLedger } from './open-ledger.ts'
import { operatorName, type ByOption } from './operator.ts'
import { silenceJson, silenceLine } from './routes-words.ts'
import { matchedLately, type MatchedLately } from './silence-effect.ts'
import { counted } from './words.ts'

export interface AddOptions extends CommonOptions, ByOption {
  for?: string
  until?: string
  reason: string
  severity: string
  owner?: string
}

export async function addSilence(
  context: Context,
  matchers: string[],
  options: AddOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const owner = checkAll(context, config, { matchers, options })
  const { silence, matched, nowMs } = await withLedger(config, async (ledger) => {
    const startsAtMs = await redisNow(ledger)
    const made = silenceOf(config, { matchers, options, owner, nowMs: startsAtMs })
    await writeSilence(ledger.redis, ledger.keys, { id: made.id, text: silenceText(made) })
    const told = await matchedLately(context, ledger, { silence: made, nowMs: startsAtMs })
    return { silence: made, matched: told, nowMs: startsAtMs }
  })
  print(context, options, {
    json: { ...silenceJson(silence), last_24_h: matched },
    lines: () => [
      `silence ${silence.id} begins within seconds; "tocsin silences expire ${silence.id}" ends it`,
      silenceLine(silence, nowMs),
      `  ${effectInWords(matched)}`,
    ],
  })
}

/** Every mistake of the line at once; the owner where there is none. */
function checkAll(
  context: Context,
  config: Config,
  { matchers, options }: Pick<Wanted, 'matchers' | 'options'>,
): string {
  const mistakes: string[] = []
  const attempt = <Result>(work: () => Result): Result | undefined => {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      mistakes.push(error.message)
      return undefined
    }
  }
  const hasOneEnd = attempt(() => refuseTwoEnds(options)) === true
  const owner = attempt(() => ownerOf(context, options)) ?? 'nobody'
  const { until: _until, ...others } = options
  const wanted = hasOneEnd ? options : { ...others, for: '1h' } // its end is told of already
  const nowMs = context.clock.now()
  attempt(() => silenceOf(config, { matchers, options: wanted, owner, nowMs }))
  if (mistakes.length > 0) throw new CommandError('mistake', mistakes.join('\n'))
  return owner
}

function refuseTwoEnds({ for: span, until }: AddOptions): true {
  if ((span === undefined) === (until === undefined)) {
    throw new CommandError(
      'mistake',
      'say when it ends: either --for <span>, such as 2h, or --until <time>',
    )
  }
  return true
}

function ownerOf(context: Context, options: AddOptions): string {
  const name = options.owner ?? operatorName(context, options)
  if (name !== undefined) return name
  throw new CommandError(
    'mistake',
    '--owner: neither USER nor the system says who you are; say who answers for the silence',
  )
}

interface Wanted {
  matchers: string[]
  options: AddOptions
  owner: string
  nowMs: number
}

function silenceOf(config: Config, { matchers, options, owner, nowMs }: Wanted): Silence {
  const { for: span, until, reason, severity } = options
  const silence = newSilence({
    id: newId(),
    matchers,
    labels: config.feeds.flatMap(({ labels }) => Object.keys(labels)),
    ...(span === undefined ? {} : { forMs: spanOf(span) }),
    ...(until === undefined ? {} : { untilMs: parseEnd(until, nowMs) }),
    owner,
    reason,
    severity,
    nowMs,
  })
  if (!isSilenceProblem(silence)) return silence
  throw new CommandError('mistake', mistakesInWords(silence, { matchers, options }))
}

const spanField = duration('How long it lasts.')

function spanOf(text: string): number {
  const span = spanField.safeParse(text)
  if (span.success) return span.data
  const [problem = '', remedy = ''] = (span.error.issues[0]?.message ?? '').split('\n')
  throw new CommandError('mistake', `--for: ${problem}; ${remedy}`)
}

/** Where the file has a key, a command has an option or an argument. */
function mistakesInWords(
  { mistakes }: SilenceProblem,
  { matchers, options }: Pick<Wanted, 'matchers' | 'options'>,
): string {
  return mistakes
    .map(({ place, problem, remedy }) => `${placeOf(place)}: ${problem}; ${remedy}`)
    .join('\n')

  function placeOf(place: string): string {
    const [key = '', index] = place.split('.')
    if (key === 'until') return options.for === undefined ? '--until' : '--for'
    if (key !== 'matchers') return `--${key}`
    return matchers[Number(index)] ?? 'matchers'
  }
}

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** `s` and six of 36: one that is in use already comes once in two thousand million. */
function newId(): string {
  return `s${Array.from({ length: 6 }, () => letters[randomInt(letters.length)]).join('')}`
}

function effectInWords({ events, matching }: MatchedLately): string {
  if (events === null)
    return 'what it would have silenced was not counted: too many events are kept, or not all are found yet after an upgrade'
  return `of the ${counted(events, 'event')} taken in during the last 24 h it would have silenced ${matching}`
}

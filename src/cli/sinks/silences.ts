/** The `silences` commands: add, list, expire. */
import { randomInt } from 'node:crypto'
import { Command } from 'commander'
import { type Config, formatMistake } from '../../config/config.ts'
import { silenceRemarks } from '../../config/dead-rules.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { readSilences } from '../../delivery/silences.ts'
import { severities } from '../../event.ts'
import {
  isSilenceProblem,
  newSilence,
  type Silence,
  type SilenceProblem,
  silenceText,
} from '../../routing/silences.ts'
import { writeSilence } from '../../store/silences.ts'
import { redisNow } from '../../redis/scripts.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { addByOption, type ByOption, operatorName, withStore } from '../open/open-store.ts'
import { durationParser, parseText, wordsOption } from '../options.ts'
import {
  CommandError,
  findNamed,
  formatIsoTime,
  formatUtcTime,
  parseShortText,
  sanitize,
} from '../terminal.ts'

export function silencesCommand(context: Context): Command {
  const list = addCommonOptions(new Command('list'))
    .description('silences of the file and those made by command: active, not begun, over')
    .action((options: CommonOptions) => listSilences(context, options))
  const expire = addCommonOptions(new Command('expire'))
    .description('end a silence that was made by command')
    .argument('<id>', 'as list shows it')
    .action((id: string, options: CommonOptions) => expireSilence(context, id, options))
  return new Command('silences')
    .addCommand(list)
    .addCommand(addSilenceCommand(context))
    .addCommand(expire)
}

function addSilenceCommand(context: Context): Command {
  return addByOption(addCommonOptions(new Command('add')))
    .description('send people nothing of what matches, from now on for a while')
    .argument('<matchers...>', `all must match, e.g. 'type="paste"' 'team="brand"'`)
    .requiredOption('--for <span>', 'how long, such as 2h; at most 30d', durationParser())
    .requiredOption('--reason <text>', 'why', parseShortText)
    .addOption(
      wordsOption(
        '--severity <ceiling>',
        'nothing more severe is silenced, e.g. medium',
        severities,
        parseText,
      ).makeOptionMandatory(),
    )
    .option('--machines', 'silence webhooks too, which get every event otherwise')
    .action((matchers: string[], options: AddOptions) => addSilence(context, matchers, options))
}

export interface AddOptions extends CommonOptions, ByOption {
  for: number
  reason: string
  severity: string
  machines?: boolean
}

export async function addSilence(
  context: Context,
  matchers: string[],
  options: AddOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const input = { matchers, options, owner: requireOwner(context, options) }
  buildSilence(config, input, context.clock.now()) // a mistake needs no Redis
  const { silence, nowMs } = await withStore(config, async (store) => {
    const startsAtMs = await redisNow(store)
    const added = buildSilence(config, input, startsAtMs)
    await writeSilence(store.redis, store.keys, { id: added.id, text: silenceText(added) })
    return { silence: added, nowMs: startsAtMs }
  })
  const remarks = silenceRemarks(config, silence, nowMs)
  for (const { problem, remedy } of remarks)
    context.terminal.printError(`warning: ${problem}; ${remedy}`)
  print(context, options, {
    json: { ...silenceJson(silence), warnings: remarks.map(({ problem }) => problem) },
    lines: () => [
      `silence ${silence.id} begins within seconds; "tocsin silences expire ${silence.id}" ends it`,
      silenceLine(silence, nowMs),
    ],
  })
}

function requireOwner(context: Context, options: AddOptions): string {
  const name = operatorName(context, options)
  if (name !== undefined) return name
  throw new CommandError(
    'mistake',
    '--by: neither USER nor the system says who you are; say who answers for the silence',
  )
}

interface SilenceInput {
  matchers: string[]
  options: AddOptions
  owner: string
}

function buildSilence(config: Config, input: SilenceInput, nowMs: number): Silence {
  const { matchers, options, owner } = input
  const { for: forMs, reason, severity } = options
  const silence = newSilence({
    id: newSilenceId(),
    matchers,
    labels: config.feeds.flatMap(({ labels }) => Object.keys(labels)),
    forMs,
    owner,
    reason,
    severity,
    machines: options.machines === true,
    nowMs,
  })
  if (!isSilenceProblem(silence)) return silence
  throw new CommandError('mistake', formatMistakes(silence, matchers))
}

/** Names the option or argument of the command in place of the key of the file. */
function formatMistakes({ mistakes }: SilenceProblem, matchers: readonly string[]): string {
  return mistakes
    .map(({ place, problem, remedy }) => `${formatPlace(place)}: ${problem}; ${remedy}`)
    .join('\n')

  function formatPlace(place: string): string {
    const [key = '', index] = place.split('.')
    if (key === 'until') return '--for'
    if (key === 'owner') return '--by'
    if (key !== 'matchers') return `--${key}`
    return matchers[Number(index)] ?? 'matchers'
  }
}

const idCharacters = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** `s` and six of 36 characters: collides with an existing id once in two thousand million. */
function newSilenceId(): string {
  return `s${Array.from({ length: 6 }, () => idCharacters[randomInt(idCharacters.length)]).join('')}`
}

/** The order of the list: active silences first. */
const phases = ['active', 'not begun', 'over'] as const

export async function listSilences(context: Context, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { silences, unreadable, nowMs } = await withStore(config, async (store) => {
    const stored = await readSilences(store.redis, store.keys)
    const all = [...config.silences, ...stored.silences]
    return { silences: all, unreadable: stored.unreadable, nowMs: await redisNow(store) }
  })
  const inOrder = phases.flatMap((phase) =>
    silences
      .filter((silence) => silencePhase(silence, nowMs) === phase)
      .toSorted((a, b) => a.endsAtMs - b.endsAtMs),
  )
  print(context, options, {
    json: inOrder.map((silence) => ({
      ...silenceJson(silence),
      phase: silencePhase(silence, nowMs).replace(' ', '_'),
    })),
    lines: () => [
      ...(inOrder.length === 0 ? ['There are no silences.'] : []),
      ...inOrder.map((silence) => `${silenceLine(silence, nowMs)}${formatOrigin(silence)}`),
      ...unreadable.map((id) => `  ${sanitize(id, 60)} cannot be read: it silences nothing`),
    ],
  })
}

function formatOrigin({ origin }: Silence): string {
  return origin === 'config' ? ' (of the file)' : ''
}

/** The silence stays listed as over for a week. */
export async function expireSilence(
  context: Context,
  id: string,
  options: CommonOptions,
): Promise<void> {
  const loaded = loadConfigFile(context, options.config)
  refuseFileSilence(loaded, id)
  const { config } = loaded
  const wasOver = await withStore(config, async ({ redis, keys }) => {
    const { silences } = await readSilences(redis, keys)
    const named = silences.map((silence) => ({ name: silence.id, silence }))
    const { silence } = findNamed(named, id, 'silence')
    const nowMs = await redisNow({ redis })
    if (silence.endsAtMs <= nowMs) return true
    const endsAtMs = Math.max(nowMs, silence.startsAtMs + 1) // it may not end before it begins
    await writeSilence(redis, keys, { id, text: silenceText({ ...silence, endsAtMs }) })
    return false
  })
  print(context, options, {
    json: { id, expired: !wasOver },
    lines: () => [wasOver ? `${id} was over already` : `${id} ends within seconds`],
  })
}

function refuseFileSilence(loaded: LoadedConfig, id: string): void {
  const index = loaded.config.silences.findIndex((silence) => silence.id === id)
  if (index === -1) return
  const problem = `${id} is a silence of the file`
  const remedy = 'remove it there; a running daemon takes the file over on SIGHUP'
  const [mistake] = loaded.place([{ path: ['silences', index], problem, remedy }])
  throw new CommandError('mistake', mistake ? formatMistake(mistake) : `${problem}; ${remedy}`)
}

export function silenceLine(silence: Silence, nowMs: number): string {
  const { id, matchers, startsAtMs, endsAtMs, owner, reason, maxSeverity, machines } = silence
  const what = matchers.map(({ text }) => text).join(' and ')
  const ceiling = `up to ${maxSeverity}${machines ? ', for machines too' : ''}`
  const span = `${formatUtcTime(startsAtMs)} to ${formatUtcTime(endsAtMs)}`
  const phase = silencePhase(silence, nowMs)
  return `  ${id} (${phase}): ${sanitize(what, 600)}, ${ceiling}, ${span}, ${sanitize(owner)}: ${sanitize(reason, 500)}`
}

export function silencePhase(
  { startsAtMs, endsAtMs }: Silence,
  nowMs: number,
): 'not begun' | 'active' | 'over' {
  if (nowMs < startsAtMs) return 'not begun'
  return nowMs < endsAtMs ? 'active' : 'over'
}

export function silenceJson(silence: Silence): Record<string, unknown> {
  const { id, matchers, startsAtMs, endsAtMs, owner, reason, maxSeverity, machines, origin } =
    silence
  return {
    id,
    matchers: matchers.map(({ text }) => text),
    starts: formatIsoTime(startsAtMs),
    until: formatIsoTime(endsAtMs),
    owner,
    reason,
    severity: maxSeverity,
    machines,
    origin,
  }
}

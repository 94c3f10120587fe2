/** The `silences` commands: add, list, expire. */
import { randomBytes } from 'node:crypto'
import { Command } from 'commander'
import { type Config, formatMistake } from '../../config/config.ts'
import { silenceRemarks } from '../../config/dead-rules.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { readSilences } from '../../delivery/silences.ts'
import { severities } from '../../event.ts'
import { formatList } from '../../lib/errors.ts'
import {
  isSilenceProblem,
  newSilence,
  type Silence,
  type SilenceProblem,
} from '../../routing/silences.ts'
import { redisNow } from '../../redis/scripts.ts'
import { tableLines } from '../columns.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import {
  addByOption,
  type ByOption,
  operatorName,
  recordCommand,
  withStore,
} from '../open/open-store.ts'
import { durationParser, parseText, wordsOption } from '../options.ts'
import { CommandError, findNamed, parseShortText, sanitize } from '../terminal.ts'
import {
  endSilence,
  readAllSilences,
  silenceColumns,
  silenceJson,
  type SilenceReach,
  sinksBySilence,
  storeSilence,
} from '../../operator/silences.ts'

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

interface AddOptions extends CommonOptions, ByOption {
  for: number
  reason: string
  severity: string
  machines?: boolean
}

async function addSilence(
  context: Context,
  matchers: string[],
  options: AddOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const owner = operatorName(context, options) ?? 'an operator'
  const input = { matchers, options, owner }
  buildSilence(config, { ...input, nowMs: context.clock.now() }) // a mistake needs no Redis
  const { silence, nowMs } = await withStore(config, async (store) => {
    const startsAtMs = await redisNow(store)
    const added = buildSilence(config, { ...input, nowMs: startsAtMs })
    const about = { act: `/silences/${added.id}`, by: options.by }
    await recordCommand(context, store, about, () => storeSilence(store, added))
    return { silence: added, nowMs: startsAtMs }
  })
  const reach = sinksBySilence(config, silence)
  const remarks = silenceRemarks(config, silence)
  for (const { problem, remedy } of remarks)
    context.terminal.printError(`warning: ${problem}; ${remedy}`)
  print(context, options, {
    json: {
      ...silenceJson(silence, nowMs),
      sinks: reach,
      warnings: remarks.map(({ problem }) => problem),
    },
    lines: () => [
      ...silenceLines(context, [silence], nowMs),
      `it begins within seconds; "tocsin silences expire ${silence.id}" ends it`,
      formatReach(reach),
    ],
  })
}

function formatReach({ silent, goes_on: others }: SilenceReach): string {
  const silenced = silent.length === 0 ? 'no sink falls silent' : `silent: ${formatList(silent)}`
  if (others.length === 0) return silenced
  return `${silenced}; machines get it all the same: ${formatList(others)} (--machines silences them too)`
}

interface SilenceInput {
  matchers: string[]
  options: AddOptions
  owner: string
  nowMs: number
}

function buildSilence(config: Config, { matchers, options, owner, nowMs }: SilenceInput): Silence {
  const { for: forMs, reason, severity } = options
  const silence = newSilence({
    id: `s${randomBytes(4).toString('hex')}`,
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

async function listSilences(context: Context, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { silences, unreadable, nowMs } = await withStore(config, (store) =>
    readAllSilences(store, config),
  )
  print(context, options, {
    json: silences.map((silence) => silenceJson(silence, nowMs)),
    lines: () => [
      ...(silences.length === 0
        ? ['There are no silences.']
        : silenceLines(context, silences, nowMs)),
      ...unreadable.map((id) => `${sanitize(id, 60)} cannot be read: it silences nothing`),
    ],
  })
}

/** The silence stays listed as over for a week. */
async function expireSilence(context: Context, id: string, options: CommonOptions): Promise<void> {
  const loaded = loadConfigFile(context, options.config)
  refuseFileSilence(loaded, id)
  const { config } = loaded
  const wasOver = await withStore(config, async ({ redis, keys }) => {
    const { silences } = await readSilences(redis, keys)
    const named = silences.map((silence) => ({ name: silence.id, silence }))
    const { silence } = findNamed(named, id, 'silence')
    const about = { act: `/silences/${id}/expire`, isDone: (hasEnded: boolean) => hasEnded }
    return !(await recordCommand(context, { redis, keys }, about, () =>
      endSilence({ redis, keys }, silence),
    ))
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

function silenceLines(context: Context, silences: readonly Silence[], nowMs: number): string[] {
  return tableLines(context, silenceColumns(nowMs), silences)
}

/** The `silences` commands: add, list, expire. */
import { randomInt } from 'node:crypto'
import { Command, Option } from 'commander'
import { type Config, formatMistake } from '../../config/config.ts'
import { silenceRemarks } from '../../config/dead-rules.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { readSilences } from '../../delivery/silences.ts'
import { severities, severityRank } from '../../event.ts'
import { formatList } from '../../lib/errors.ts'
import { createReach, meetsFeed } from '../../routing/reach.ts'
import { createRouter } from '../../routing/router.ts'
import {
  findSilence,
  isSilenceProblem,
  newSilence,
  type Silence,
  type SilenceProblem,
  silenceText,
} from '../../routing/silences.ts'
import { sinkTypeOf } from '../../sinks/sink-types.ts'
import type { AccountLedger } from '../../store/account-ledger.ts'
import { type LedgerRecord, readPayload, scanRecords } from '../../store/records.ts'
import { writeSilence } from '../../store/silences.ts'
import { redisNow } from '../../redis/scripts.ts'
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
  type OpenStore,
  operatorName,
  withStore,
} from '../open/open-store.ts'
import { durationParser, parseFutureTime, parseText, wordsOption } from '../options.ts'
import {
  CommandError,
  findNamed,
  formatIsoTime,
  formatUtcTime,
  parseShortText,
  pluralize,
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
    .addOption(
      new Option('--for <span>', 'how long, such as 2h; at most 30d')
        .argParser(durationParser())
        .conflicts('until'),
    )
    .option('--until <time>', 'when it ends, such as 2026-11-21T18:00Z')
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
    .option(
      '--owner <name>',
      "who answers for it (default: --by, $USER or the system's user)",
      parseShortText,
    )
    .action((matchers: string[], options: AddOptions) => addSilence(context, matchers, options))
}

export interface AddOptions extends CommonOptions, ByOption {
  for?: number
  until?: string
  reason: string
  severity: string
  machines?: boolean
  owner?: string
}

export async function addSilence(
  context: Context,
  matchers: string[],
  options: AddOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const owner = requireOwner(context, options)
  if (options.for === undefined && options.until === undefined) {
    throw new CommandError(
      'mistake',
      'say when it ends: --for <span>, such as 2h, or --until <time>',
    )
  }
  const input = { matchers, options, owner }
  buildSilence(config, { ...input, nowMs: context.clock.now() }) // a mistake needs no Redis
  const { silence, matched, nowMs } = await withStore(config, async (store) => {
    const startsAtMs = await redisNow(store)
    const added = buildSilence(config, { ...input, nowMs: startsAtMs })
    await writeSilence(store.redis, store.keys, { id: added.id, text: silenceText(added) })
    const effect = await measureEffect(context, store, { silence: added, nowMs: startsAtMs })
    return { silence: added, matched: effect, nowMs: startsAtMs }
  })
  const reach = sinksBySilence(config, silence)
  const remarks = silenceRemarks(config, silence, nowMs)
  for (const { problem, remedy } of remarks)
    context.terminal.printError(`warning: ${problem}; ${remedy}`)
  print(context, options, {
    json: {
      ...silenceJson(silence),
      sinks: reach,
      last_24_h: matched,
      warnings: remarks.map(({ problem }) => problem),
    },
    lines: () => [
      `silence ${silence.id} begins within seconds; "tocsin silences expire ${silence.id}" ends it`,
      silenceLine(silence, nowMs),
      `  ${formatReach(reach)}`,
      `  ${formatEffect(matched)}`,
    ],
  })
}

/**
 * Sinks that events of the silence's feeds and severities may reach, by whether they get what it
 * matches.
 */
interface SilenceReach {
  silent: string[]
  goes_on: string[]
}

function sinksBySilence(
  { route, feeds, sinks }: Config,
  { matchers, machines, maxSeverity }: Silence,
): SilenceReach {
  const reachOf = createReach(createRouter(route).root)
  const silenced = severities.slice(0, severityRank(maxSeverity))
  const met = silenced.flatMap((severity) =>
    feeds
      .filter((feed) => meetsFeed(feed, matchers, severity))
      .flatMap((feed) => [...reachOf(feed, severity)]),
  )
  const reached = new Set(met)
  const isSilent = (sink: Config['sinks'][number]): boolean =>
    machines || sinkTypeOf(sink).audience === 'people'
  const all = Object.groupBy(
    sinks.filter(({ name }) => reached.has(name)),
    (sink) => (isSilent(sink) ? 'silent' : 'goes_on'),
  )
  const namesOf = (some: Config['sinks'] = []): string[] => some.map(({ name }) => name)
  return { silent: namesOf(all.silent), goes_on: namesOf(all.goes_on) }
}

function formatReach({ silent, goes_on: others }: SilenceReach): string {
  const silenced = silent.length === 0 ? 'no sink falls silent' : `silent: ${formatList(silent)}`
  if (others.length === 0) return silenced
  return `${silenced}; machines get it all the same: ${formatList(others)} (--machines silences them too)`
}

function requireOwner(context: Context, options: AddOptions): string {
  const name = options.owner ?? operatorName(context, options)
  if (name !== undefined) return name
  throw new CommandError(
    'mistake',
    '--owner: neither USER nor the system says who you are; say who answers for the silence',
  )
}

interface SilenceInput {
  matchers: string[]
  options: AddOptions
  owner: string
  nowMs: number
}

function buildSilence(config: Config, { matchers, options, owner, nowMs }: SilenceInput): Silence {
  const { for: forMs, until, reason, severity } = options
  const silence = newSilence({
    id: newSilenceId(),
    matchers,
    labels: config.feeds.flatMap(({ labels }) => Object.keys(labels)),
    ...(forMs !== undefined && { forMs }),
    ...(until !== undefined && { untilMs: parseFutureTime(until, nowMs) }),
    owner,
    reason,
    severity,
    machines: options.machines === true,
    nowMs,
  })
  if (!isSilenceProblem(silence)) return silence
  throw new CommandError('mistake', formatMistakes(silence, { matchers, options }))
}

/** Names the option or argument of the command in place of the key of the file. */
function formatMistakes(
  { mistakes }: SilenceProblem,
  { matchers, options }: Pick<SilenceInput, 'matchers' | 'options'>,
): string {
  return mistakes
    .map(({ place, problem, remedy }) => `${formatPlace(place)}: ${problem}; ${remedy}`)
    .join('\n')

  function formatPlace(place: string): string {
    const [key = '', index] = place.split('.')
    if (key === 'until') return options.for === undefined ? '--until' : '--for'
    if (key !== 'matchers') return `--${key}`
    return matchers[Number(index)] ?? 'matchers'
  }
}

const idCharacters = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** `s` and six of 36 characters: collides with an existing id once in two thousand million. */
function newSilenceId(): string {
  return `s${Array.from({ length: 6 }, () => idCharacters[randomInt(idCharacters.length)]).join('')}`
}

function formatEffect({ events, matching }: SilenceEffect): string {
  if (events === null)
    return 'what it would have silenced was not counted: too many events are kept'
  return `of the ${pluralize(events, 'event')} taken in during the last 24 h it would have silenced ${matching}`
}

/**
 * What a silence would have suppressed lately. Both null: there are too many records to read.
 */
export interface SilenceEffect {
  events: number | null
  matching: number | null
}

/** Reading more records takes seconds, and the daemon shares Redis. */
const maxRecords = 20_000

const dayMs = 24 * 3_600_000

/** Covers the 24 h before `nowMs`; an event whose payload is gone does not count as matching. */
export async function measureEffect(
  { terminal }: Context,
  store: OpenStore,
  { silence, nowMs }: { silence: Silence; nowMs: number },
): Promise<SilenceEffect> {
  const sinceMs = nowMs - dayMs
  let [read, events, matching] = [0, 0, 0]
  for (const ledger of store.ledgers) {
    for await (const record of scanRecords(ledger, sinceMs)) {
      read += 1
      if (read > maxRecords) return { events: null, matching: null }
      if (read % 1_000 === 0) terminal.progress(`${read} events looked at`)
      if (record.firstSeenMs < sinceMs) continue
      events += 1
      if (await isSilencedBy(ledger, record, silence)) matching += 1
    }
  }
  terminal.progress('')
  return { events, matching }
}

async function isSilencedBy(
  ledger: AccountLedger,
  record: LedgerRecord,
  silence: Silence,
): Promise<boolean> {
  const { account, recordId, sightings } = record
  const payload = await readPayload(ledger, recordId)
  if (!payload) return false
  return sightings.some(({ feed, labels, severity }) => {
    const input = { event: { ...payload.event, severity }, account, feed, labels }
    return findSilence([silence], input, silence.startsAtMs) !== undefined
  })
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

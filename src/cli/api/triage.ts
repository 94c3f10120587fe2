/**
 * Triage back to the service: `events` and `credentials` `ignore|remediate|restore`, and `events
 * tag|note|severity`. Each command is a row of a table. The service says nothing per target, so a
 * batch that it refuses is sent again one by one.
 */
import { Command, InvalidArgumentError, Option } from 'commander'
import { refang } from '../../messages/sanitize.ts'
import { noteTriage, noteTriageOutcome } from '../../store/triage.ts'
import { isUnknownPath } from '../../upstream/capabilities.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { eventSeverities, type TriageAction } from '../../upstream/resources/enumerations.ts'
import { maxTargets, type TenantNote } from '../../upstream/resources/triage.ts'
import { type Context, requireConfirmation } from '../context.ts'
import { addByOption, type ByOption, ledgerFor, operatorName } from '../open/open-store.ts'
import { parseList, parseText } from '../options.ts'
import { pluralize, sanitize, type Style } from '../terminal.ts'
import {
  addServiceOptions,
  type ApiContext,
  callOptional,
  requestFaultStatuses,
  type ServiceOptions,
  withClient,
} from './api-command.ts'
import { createPrinter, type Listing } from './listing.ts'

interface TriageOptions extends ServiceOptions, ByOption {
  yes?: true
}

/** One kind of thing that commands act on. */
interface TargetKind {
  thing: string
  /** How a target is called in JSON and CSV. */
  key: 'uid' | 'credential_hash'
  argument: { name: string; says: string; parse: (text: string) => string }
  /** The most targets of one request. */
  most: number
  operation: { capability: string; operation: string; permission: string; instead: string }
}

const eventKind: TargetKind = {
  thing: 'event',
  key: 'uid',
  argument: {
    name: '<uids...>',
    says: 'of events; as they stand in a message will do',
    parse: (text) => refang(parseText(text)),
  },
  most: maxTargets.events,
  operation: {
    capability: 'events/actions',
    operation: 'triage of events',
    permission: 'to change events',
    instead: 'the web application has it',
  },
}

const credentialKind: TargetKind = {
  thing: 'credential',
  key: 'credential_hash',
  argument: {
    name: '<hashes...>',
    says: 'the credential_hash of credentials, as --reveal shows it in JSON or CSV',
    parse: parseHash,
  },
  most: maxTargets.credentials,
  operation: {
    capability: 'credentials/actions',
    operation: 'triage of credentials',
    permission: 'to change credentials',
    instead: 'the web application has it',
  },
}

/** Its form is not published: a word that stands for a pair of login and secret. */
export function parseHash(text: string): string {
  if (/^[\w.:+/=-]{1,200}$/.test(text)) return text
  throw new InvalidArgumentError(
    'Write the whole credential_hash, as --reveal shows it in JSON or CSV.',
  )
}

/** One command: what it asks of the service for some targets. */
interface TriageCommand<Options extends TriageOptions> {
  verb: string
  description: string
  kind: TargetKind
  options?: (command: Command) => Command
  /** Completes `3 events will be …`. Throws CommandError for options that make no sense. */
  change: (options: Options) => string
  /** The most targets of one request, where it is less than the kind's. */
  most?: number
  send: (api: ApiContext, targets: readonly string[], options: Options) => Promise<unknown>
}

interface RestoreOptions extends TriageOptions {
  ignored?: true
  remediated?: true
}

const closing = {
  ignore: {
    description: 'what turned out not to matter: the service hides it from searches',
    change: 'ignored',
  },
  remediate: { description: 'what was dealt with', change: 'marked as remediated' },
} as const

export function eventTriageCommands(context: Context): Command[] {
  return [...closingCommands(context, eventKind), ...noteCommands(context)]
}

export function credentialTriageCommands(context: Context): Command[] {
  return closingCommands(context, credentialKind)
}

function closingCommands(context: Context, kind: TargetKind): Command[] {
  const verbs = ['ignore', 'remediate'] as const
  return [
    ...verbs.map((verb) =>
      triageCommand(context, {
        verb,
        kind,
        description: closing[verb].description,
        change: () => closing[verb].change,
        send: (api, targets) => sendAction(api, kind, { action: verb, targets }),
      }),
    ),
    triageCommand<RestoreOptions>(context, {
      verb: 'restore',
      kind,
      description: 'undo ignore and remediate',
      options: (command) =>
        command
          .option('--ignored', 'undo only that it was ignored')
          .option('--remediated', 'undo only that it was remediated'),
      change: (options) => `restored (${undoActions(options).join(', ')})`,
      async send(api, targets, options) {
        let done: TriageAction | undefined
        for (const action of undoActions(options)) {
          try {
            await sendAction(api, kind, { action, targets })
          } catch (error) {
            throw done && error instanceof UpstreamError
              ? halfDoneError(error, done, action)
              : error
          }
          done = action
        }
      },
    }),
  ]
}

function undoActions({ ignored, remediated }: RestoreOptions): TriageAction[] {
  const isBoth = ignored === remediated
  return [
    ...(isBoth || ignored ? ['unignore' as const] : []),
    ...(isBoth || remediated ? ['unremediate' as const] : []),
  ]
}

/** The failure of the second of two requests, of which the first is done. */
function halfDoneError(
  { reason, message, status, serviceCode, fault, details }: UpstreamError,
  done: TriageAction,
  failed: TriageAction,
): UpstreamError {
  const options = { status, serviceCode, fault, details, mayBeDone: true }
  return new UpstreamError(reason, `${done} is done, ${failed} failed: ${message}`, options)
}

function sendAction(
  { client, callOptions }: ApiContext,
  { key }: TargetKind,
  { action, targets }: { action: TriageAction; targets: readonly string[] },
): Promise<void> {
  return key === 'uid'
    ? client.actOnEvents({ action, uids: targets, ...callOptions() })
    : client.actOnCredentials({ action, hashes: targets, ...callOptions() })
}

interface NoteOptions extends TriageOptions {
  tags?: string[]
  text?: string
  to?: (typeof eventSeverities)[number]
}

/** What the tenant notes about an event: a row for each field. */
const notes: readonly {
  verb: string
  description: string
  option: Option
  change: (options: NoteOptions) => string
  toNote: (options: NoteOptions) => TenantNote
}[] = [
  {
    verb: 'tag',
    description: 'put tags in the place of those that events have at the service',
    option: new Option('--tags <tags>', 'all their tags from now on, such as vip,2026').argParser(
      parseList,
    ),
    change: ({ tags = [] }) => `tagged ${tags.join(', ')}, in place of the tags that they have`,
    toNote: ({ tags = [] }) => ({ tags }),
  },
  {
    verb: 'note',
    description: 'put a note in the place of the one that events have at the service',
    option: new Option('--text <text>', 'the whole note').argParser(parseText),
    change: () => 'given this note, in place of the one that they have',
    toNote: ({ text = '' }) => ({ notes: text }),
  },
  {
    verb: 'severity',
    description: 'override the severity of events for the whole tenant',
    option: new Option('--to <severity>', 'the severity from now on').choices(eventSeverities),
    change: ({ to }) => `of severity ${to}, for the whole tenant`,
    toNote: ({ to }) => (to ? { severity: to } : {}),
  },
]

function noteCommands(context: Context): Command[] {
  return notes.map(({ option, toNote, ...row }) =>
    triageCommand<NoteOptions>(context, {
      ...row,
      kind: eventKind,
      most: 1,
      options: (command) => command.addOption(option.makeOptionMandatory()),
      async send({ client, callOptions }, [uid = ''], options) {
        await client.noteOnEvent({ uid, note: toNote(options), ...callOptions() })
      },
    }),
  )
}

function triageCommand<Options extends TriageOptions>(
  context: Context,
  row: TriageCommand<Options>,
): Command {
  const { verb, description, kind, options: addOptions } = row
  const { name, says, parse } = kind.argument
  const collect = (text: string, before: readonly string[] = []): string[] => [
    ...before,
    parse(text),
  ]
  const command = new Command(verb).description(description).argument(name, says, collect)
  addOptions?.(command)
  command.option('--yes', 'do not ask')
  return addServiceOptions(addByOption(command)).action((targets: string[], options: Options) =>
    triage(context, row, { targets: [...new Set(targets)], options }),
  )
}

type TargetState = 'done' | 'refused' | 'unclear' | 'not tried'

interface TargetResult {
  target: string
  state: TargetState
  reason: string | null
}

async function triage<Options extends TriageOptions>(
  context: Context,
  row: TriageCommand<Options>,
  { targets, options }: { targets: readonly string[]; options: Options },
): Promise<void> {
  const { verb, kind } = row
  const by = operatorName(context, options) ?? 'an operator'
  const results: TargetResult[] = targets.map(toUntried)
  const report = (): void => printResults(context, options, { results, by, verb, kind })
  await withClient(context, options, async (api) => {
    if (!options.yes) {
      const what = `${pluralize(targets.length, kind.thing)} will be ${row.change(options)}`
      const where = `at the service, by account ${api.account}`
      await requireConfirmation(context, [`${sanitize(what)} ${where}: ${formatTargets(targets)}.`])
    }
    context.stop.addEventListener('abort', report, { once: true })
    try {
      await sendAll({ api, row, options, by }, results)
    } finally {
      context.stop.removeEventListener('abort', report)
      if (!context.stop.aborted) report()
    }
  })
  if (results.some(({ state }) => state !== 'done')) context.exitCode = 1
}

function toUntried(target: string): TargetResult {
  return { target, state: 'not tried', reason: null }
}

function formatTargets(targets: readonly string[]): string {
  const shown = targets.slice(0, 20).map((target) => sanitize(target))
  const more = targets.length - shown.length
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}

interface Sending<Options extends TriageOptions> {
  api: ApiContext
  row: TriageCommand<Options>
  options: Options
  by: string
}

/**
 * Sends batch after batch and writes into `results` what came of each. Stops, and throws, at the
 * first failure that is not about the targets: their rest stays untried.
 */
async function sendAll<Options extends TriageOptions>(
  sending: Sending<Options>,
  results: readonly TargetResult[],
): Promise<void> {
  const { kind, most = kind.most } = sending.row
  for (let at = 0; at < results.length; at += most) {
    const batch = results.slice(at, at + most)
    const refusal = await sendBatch(sending, batch)
    if (refusal && batch.length > 1) {
      settle(batch, 'not tried', null)
      for (const one of batch) await sendBatch(sending, [one])
    }
    // A key that changed any target may change others: what is refused then is the target.
    const isNothingDone = results.every(({ state }) => state === 'refused' || state === 'not tried')
    if (refusal?.status === 403 && isNothingDone) throw await explainRefusal(sending, refusal)
  }
}

/** Sends one request, recorded before and after. Returns the refusal, if it is about the targets. */
async function sendBatch<Options extends TriageOptions>(
  sending: Sending<Options>,
  batch: readonly TargetResult[],
): Promise<UpstreamError | undefined> {
  const { api, row, options, by } = sending
  const targets = batch.map(({ target }) => target)
  const ledger = ledgerFor(api.store, api.account)
  const noteId = await noteTriage(ledger, { by, action: row.verb, targets })
  settle(batch, 'unclear', 'interrupted before the service answered')
  try {
    await row.send(api, targets, options)
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    const isRefused = requestFaultStatuses.has(error.status ?? 0) || error.reason === 'invalid'
    const unsettled = error.mayBeDone ? 'unclear' : 'not done'
    const outcome = isRefused && !error.mayBeDone ? 'refused' : unsettled
    if (outcome === 'not done') settle(batch, 'not tried', null)
    else settle(batch, outcome, error.message)
    await noteTriageOutcome(ledger, noteId, outcome)
    if (isUnknownPath(error) || error.status === 405) throw await explainRefusal(sending, error)
    if (isRefused) return error
    throw error
  }
  settle(batch, 'done', null)
  await noteTriageOutcome(ledger, noteId, 'done')
  return undefined
}

function settle(batch: readonly TargetResult[], state: TargetState, reason: string | null): void {
  for (const one of batch) Object.assign(one, { state, reason })
}

/** The error that names the permission or server which the operation takes. */
async function explainRefusal<Options extends TriageOptions>(
  { api, row }: Sending<Options>,
  refusal: UpstreamError,
): Promise<unknown> {
  try {
    await callOptional(api.client, row.kind.operation, Promise.reject(refusal))
  } catch (error) {
    return error
  }
  return refusal
}

function printResults(
  context: Context,
  options: TriageOptions,
  {
    results,
    by,
    verb,
    kind,
  }: { results: readonly TargetResult[]; by: string; verb: string; kind: TargetKind },
): void {
  const printer = createPrinter(context, options.output, resultListing({ by, verb, kind }))
  printer.add(results)
  printer.end(null)
  const left = results.filter(({ state }) => state !== 'done').map(({ target }) => target)
  if (left.length > 0) {
    context.terminal.printError(`left to do: ${left.map((one) => sanitize(one, 600)).join(' ')}`)
  }
}

const stateStyles: Readonly<Record<TargetState, Style>> = {
  done: 'green',
  refused: 'red',
  unclear: 'yellow',
  'not tried': 'yellow',
}

function resultListing({
  by,
  verb,
  kind,
}: {
  by: string
  verb: string
  kind: TargetKind
}): Listing<TargetResult> {
  return {
    columns: [
      {
        title: 'STATE',
        width: 9,
        text: ({ state }) => state,
        style: ({ state }) => stateStyles[state],
      },
      { title: kind.thing.toUpperCase(), width: 60, text: ({ target }) => target },
    ],
    below: ({ reason }) => (reason === null ? [] : [sanitize(reason, 1_000)]),
    json: ({ target, state, reason }) => ({ [kind.key]: target, action: verb, state, reason, by }),
    csv: [kind.key, 'action', 'state', 'reason', 'by'],
  }
}

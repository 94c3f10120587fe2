/** `assets apply`: brings assets, their policies and who has which to the state of a file. */
import { basename, dirname, extname, join } from 'node:path'
import { Command } from 'commander'
import type { ParsedFile } from '../../config/parse-file.ts'
import { systemClock } from '../../lib/clock.ts'
import { createSecretBox } from '../../lib/sealed-secret.ts'
import type { ServiceClient } from '../../upstream/client.ts'
import { ServiceError } from '../../upstream/error.ts'
import type { AssetReplacement } from '../../upstream/resources/assets.ts'
import type { Asked } from '../../upstream/resources/operation.ts'
import { addServiceOptions, type OpenService, placeOf, withClient } from '../api/api-command.ts'
import { askFirst, type CommonOptions, type Context, print } from '../context.ts'
import { CommandError, counted } from '../terminal.ts'
import {
  isAbsent,
  lookAtAdopted,
  nameServiceError,
  readActual,
  readAsset,
  readBeyond,
  readPolicy,
  unseenAssets,
} from './actual.ts'
import {
  anotherAdoption,
  anotherName,
  type Doubts,
  refuseDoubt,
  refuseUnknownNames,
  settleDoubts,
} from './doubts.ts'
import {
  loadMonitoringFile,
  mistakesIn,
  type MonitoringContent,
  parseMonitoring,
  type Wanted,
  type WantedAsset,
  wantedOf,
} from './monitoring-file.ts'
import { notesOn, riskIn, stepJson, stepLine, undescribedIn } from './plan-words.ts'
import {
  impossibleChanges,
  planChanges,
  refuseGone,
  refuseTwins,
  type Scene,
  type Step,
  type StepOf,
} from './plan.ts'
import {
  assetIn,
  type Intent,
  type KnownAsset,
  type MonitoringState,
  openStateFile,
  type PolicyContent,
  policyIn,
  type StateFile,
  withoutPolicy,
} from './state-file.ts'

interface ApplyOptions extends CarryOptions, Doubts {
  config?: string
  account?: string
  file: string
  state?: string
}

export function assetsApplyCommand(context: Context): Command {
  return addServiceOptions(new Command('apply'), ['text', 'json'])
    .description('bring assets and their policies to the state of a file')
    .requiredOption(
      '-f, --file <file>',
      'what there shall be: assets, policies, who has which; - for standard input',
    )
    .option('--state <file>', 'what earlier runs made (default: beside the file, as .state.json)')
    .option('--plan', 'say what would be done, and do nothing')
    .option('--yes', 'do not ask')
    .option('--adopt <name=id>', 'an asset or policy of the file is there already', anotherAdoption)
    .option(
      '--create-again <name>',
      'what was created, or may have been, is not there',
      anotherName,
    )
    .action((options: ApplyOptions) => apply(context, options))
}

async function apply(context: Context, options: ApplyOptions): Promise<void> {
  const statePath = statePathOf(options)
  const { content, place } = await readMonitoring(context, options.file)
  const named = options.account ?? content.account
  const asked = named === undefined ? options : { ...options, account: named }
  await withClient(context, asked, async (service) => {
    const { account } = service.client
    const box = createSecretBox(() => account.apiKey.reveal())
    const wanted = wantedOf(content, (parts) => box.digest(parts))
    const file = openStateFile(statePath, account)
    const scene = await settledScene(service, { wanted, state: file.current(), doubts: options })
    const state = options.plan ? scene.state : await lookAtAdopted(context, options, service, scene)
    const planned = await makePlan(service, { ...scene, state })
    refuseImpossible(planned, place, placeOf(options.file))
    await carryOut(context, options, { service, file, planned })
  })
}

async function readMonitoring(
  { env, terminal }: Context,
  file: string,
): Promise<ParsedFile<MonitoringContent>> {
  if (file !== '-') return loadMonitoringFile(file, env)
  return parseMonitoring(await terminal.readInput(), placeOf(file), env)
}

/** `monitoring.yaml` has its `monitoring.state.json`. */
function statePathOf({ file, state }: ApplyOptions): string {
  if (state !== undefined) return state
  if (file !== '-') return join(dirname(file), `${basename(file, extname(file))}.state.json`)
  const problem = 'standard input has no place for its state'
  throw new CommandError('mistake', `${problem}; name the file of earlier runs with --state`)
}

/** What is there, and the state with what the operator says of it. */
async function settledScene(
  { client, asked }: OpenService,
  { wanted, state, doubts }: { wanted: Wanted; state: MonitoringState; doubts: Doubts },
): Promise<Scene> {
  refuseUnknownNames(doubts, wanted, state)
  refuseDoubt(state, doubts)
  const actual = await readActual(client, asked, state, doubts.adopt)
  const settled = { wanted, actual, state: settleDoubts({ wanted, state, actual }, doubts) }
  refuseGone(settled)
  refuseTwins(settled, doubts.createAgain)
  return settled
}

/** Asks what a server can beyond the description only where that would help. */
async function makePlan({ client, asked }: OpenService, scene: Scene): Promise<Planned> {
  const { wanted, state, actual } = scene
  const steps = planChanges(scene)
  const doomed = steps.flatMap((step) => (step.do === 'delete policy' ? [step.uuid] : []))
  const there = doomed.filter((uuid) => actual.policies.has(uuid))
  const notes = notesOn(scene)
  if (there.length === 0) return { wanted, state, steps, notes }
  const beyond = await readBeyond(client, asked, there)
  const withMore = planChanges({ ...scene, actual: { ...actual, ...beyond } })
  return { wanted, state, steps: withMore, notes }
}

function refuseImpossible(
  { wanted, state, steps }: Planned,
  place: ParsedFile<unknown>['place'],
  file: string,
): void {
  const mistakes = place(impossibleChanges(wanted, state, steps))
  if (mistakes.length > 0) throw mistakesIn(file, mistakes)
}

/** Shows a plan, asks, and takes its steps until one is refused; then says what was done and what not. */

interface CarryOptions {
  output: CommonOptions['output']
  plan?: true
  yes?: true
}

interface Planned {
  wanted: Wanted
  /** From which the plan starts, with what the operator said about it. */
  state: MonitoringState
  steps: readonly Step[]
  notes: readonly string[]
}

interface Parts {
  service: OpenService
  file: StateFile
  planned: Planned
}

/** Throws what a step throws, and CommandError where the operator says no. */
async function carryOut(
  context: Context,
  options: CarryOptions,
  { service, file, planned }: Parts,
): Promise<void> {
  const { steps, state, wanted } = planned
  const isText = options.output === 'text'
  if (isText) context.terminal.print(planLines(context, planned, options).join('\n'))
  if (options.plan) return printJson(context, options, planned, 0)
  const risk = riskIn(steps, wanted.cleanPastEvents)
  if (risk !== undefined && !options.yes) await askFirst(context, [risk])
  if (state !== file.current()) file.save(state)
  let done = 0
  try {
    for (const step of steps) {
      context.terminal.progress(`${done} of ${counted(steps.length, 'step')} done`)
      await take(step, { service, file, planned })
      done += 1
    }
  } catch (error) {
    context.terminal.progress('')
    if (isText) sayWhereItStopped(context, planned, done)
    // What the state file has not taken, its error tells.
    if (isText && !(error instanceof CommandError)) context.terminal.complain(goesOn)
    printJson(context, options, planned, done)
    throw error
  }
  context.terminal.progress('')
  if (isText && done > 0) context.terminal.print(`done: ${counted(done, 'step')}`)
  printJson(context, options, planned, done)
}

async function take(step: Step, { service, file, planned }: Parts): Promise<void> {
  const { client, asked } = service
  const { cleanPastEvents } = planned.wanted
  const now = (): number => systemClock.now()
  await nameServiceError(
    nameOf(step),
    takeStep(step, { client, asked, file, cleanPastEvents, now }),
  )
}

function nameOf(step: Step): string {
  if ('asset' in step) return `asset ${step.asset.key}`
  if ('policy' in step) return `policy ${step.policy.key}`
  return `${step.do.endsWith('asset') ? 'asset' : 'policy'} ${step.key}`
}

function planLines(
  { terminal }: Context,
  { steps, notes, wanted, state }: Planned,
  { plan }: CarryOptions,
): string[] {
  const undescribed = undescribedIn(steps)
  const isReached = steps.length === 0 && unseenAssets(wanted, state).length === 0
  return [
    ...notes.map((note) => terminal.paint('dim', note)),
    ...steps.map((step) => {
      const { text, style } = stepLine(step, wanted.cleanPastEvents)
      return terminal.paint(style, text)
    }),
    ...(undescribed.length === 0
      ? []
      : [`beyond the description of the API: ${undescribed.join(', ')}`]),
    ...(isReached ? ['nothing to do'] : []),
    ...(plan && steps.length > 0 ? [`${counted(steps.length, 'step')}; nothing was done`] : []),
  ]
}

function sayWhereItStopped({ terminal }: Context, { steps, wanted }: Planned, done: number): void {
  const lineOf = (step: Step): string => `  ${stepLine(step, wanted.cleanPastEvents).text}`
  const [before, after] = [steps.slice(0, done), steps.slice(done)]
  if (before.length > 0) terminal.complain(['done:', ...before.map(lineOf)].join('\n'))
  terminal.complain(['not done:', ...after.map(lineOf)].join('\n'))
}

const goesOn = 'what is done is in the state file; the next run goes on from there'

function printJson(
  context: Context,
  { output }: CarryOptions,
  { steps, notes, wanted }: Planned,
  done: number,
): void {
  if (output === 'text') return
  const json = {
    steps: steps.map((step, index) => ({ ...stepJson(step), done: index < done })),
    notes,
    beyond_description: undescribedIn(steps),
    clean_past_events: wanted.cleanPastEvents,
    left: steps.length - done,
  }
  print(context, { output }, { json, lines: () => [] })
}

/** One step of a plan, and what it leaves in the state. All but creations may be repeated. */

/** Throws ServiceError, and what the state file throws. */
export async function takeStep(step: Step, parts: StepParts): Promise<void> {
  switch (step.do) {
    case 'create asset':
      return createAsset(step, parts)
    case 'replace asset':
      return replaceAsset(step, parts)
    case 'enable asset':
    case 'disable asset':
      return toggleAsset(step, parts)
    case 'create policy':
      return createPolicy(step, parts)
    case 'update policy':
      return updatePolicy(step, parts)
    case 'assign policy':
    case 'unassign policy':
      return assignPolicy(step, parts)
    case 'assign to others':
      return assignToOthers(step, parts)
    case 'delete policy':
      return deletePolicy(step, parts)
  }
}

async function replaceAsset(step: StepOf<'replace asset'>, parts: StepParts): Promise<void> {
  const { asset, id } = step
  const known = knownAsset(asset.key, parts)
  const body = replacementOf(asset, known)
  const made = await parts.client.replaceAsset({ id, asset: body, ...parts.asked() })
  const group = known.written?.['assets_group_id']
  const written = { ...asset.written, ...(group === undefined ? {} : { assets_group_id: group }) }
  keepAsset(asset.key, { ...known, ...readAsset(made, known.disabled), written }, parts)
}

/** The whole of what came back last, with what the file says in its place. */
function replacementOf(
  { body }: WantedAsset,
  { returned, disabled }: KnownAsset,
): AssetReplacement {
  const { assets_group_id: _group, ...said } = body
  const search_types = said.search_types as AssetReplacement['search_types'] // checked before: no ad
  return {
    ...returned,
    ...(disabled === null ? {} : { is_disabled: disabled }),
    ...said,
    search_types,
  }
}

async function toggleAsset(
  step: StepOf<'enable asset' | 'disable asset'>,
  parts: StepParts,
): Promise<void> {
  const known = knownAsset(step.key, parts)
  const isDisabled = step.do === 'disable asset'
  const made = await parts.client.toggleAsset({ id: known.id, isDisabled, ...parts.asked() })
  const switched = { disabled: isDisabled, disabled_by_file: isDisabled }
  keepAsset(step.key, { ...known, ...readAsset(made, isDisabled), ...switched }, parts)
}

async function updatePolicy(step: StepOf<'update policy'>, parts: StepParts): Promise<void> {
  const { uuid, policy } = step
  const { name, value } = policy.body
  const made = await parts.client.updatePolicy({ uuid, name, value, ...parts.asked() })
  const state = parts.file.current()
  const known = { uuid, written: contentOf(policy.body), returned: readPolicy(made) }
  parts.file.save({ ...state, policies: { ...state.policies, [policy.key]: known } })
}

async function assignPolicy(
  step: StepOf<'assign policy' | 'unassign policy'>,
  parts: StepParts,
): Promise<void> {
  const { key, assets } = step
  const { client, file } = parts
  const identifier_ids = assets.map((asset) => knownAsset(asset, parts).id)
  if (step.do === 'assign policy') {
    const { uuid } = knownPolicy(key, parts)
    const assignment = { identifier_ids, clean_past_events: parts.cleanPastEvents }
    await client.assignPolicy({ uuid, assignment, ...parts.asked() })
  } else {
    const assignment = { identifier_ids }
    await client.unassignPolicy({ uuid: step.uuid, assignment, ...parts.asked() })
  }
  const state = file.current()
  const changed = assets.map((asset): [string, KnownAsset] => {
    const known = knownAsset(asset, parts)
    const others = known.policies.filter((policy) => policy !== key)
    return [asset, { ...known, policies: step.do === 'assign policy' ? [...others, key] : others }]
  })
  file.save({ ...state, assets: { ...state.assets, ...Object.fromEntries(changed) } })
}

/** Whatever else the file says of them: what they matched before stays theirs. */
async function assignToOthers(
  { key, ids }: StepOf<'assign to others'>,
  { client, asked, ...parts }: StepParts,
): Promise<void> {
  const { uuid } = knownPolicy(key, parts)
  const assignment = { identifier_ids: [...ids], clean_past_events: false }
  await client.assignPolicy({ uuid, assignment, ...asked() })
}

async function deletePolicy(step: StepOf<'delete policy'>, parts: StepParts): Promise<void> {
  const { key, uuid, why } = step
  try {
    await parts.client.deletePolicy({ uuid, ...parts.asked() })
  } catch (error) {
    if (!isAbsent(error)) throw error
  }
  const state = parts.file.current()
  const retired = state.retired.filter((one) => one.uuid !== uuid)
  parts.file.save(
    why === 'left' ? withoutPolicy({ ...state, retired }, key) : { ...state, retired },
  )
}

function contentOf({ name, type, value }: PolicyContent): PolicyContent {
  return { name, type, value }
}

function keepAsset(key: string, known: KnownAsset, { file }: StepParts): void {
  const state = file.current()
  file.save({ ...state, assets: { ...state.assets, [key]: known } })
}

function knownAsset(key: string, { file }: Pick<StepParts, 'file'>): KnownAsset {
  const known = assetIn(file.current(), key)
  if (known === undefined) throw new Error(`the state has no asset ${key}`)
  return known
}

function knownPolicy(key: string, { file }: Pick<StepParts, 'file'>): { uuid: string } {
  const known = policyIn(file.current(), key)
  if (known === undefined) throw new Error(`the state has no policy ${key}`)
  return known
}

/**
 * Creations: each is written down before it leaves, so that one whose answer is lost is never sent
 * again unasked. One that never left, or was refused, leaves nothing behind.
 */

type Creation = Omit<Intent, 'at'>

async function createAsset({ asset }: StepOf<'create asset'>, parts: StepParts): Promise<void> {
  const { key, body, written } = asset
  const creation = { kind: 'asset', name: key } as const
  const made = await intending(creation, parts, (asked) =>
    parts.client.createAsset({ asset: body, ...asked }),
  )
  const seen = readAsset(made, false)
  const known = { ...seen, id: made.id, written, disabled_by_file: false, policies: [] }
  keepMade({ ...creation, id: made.id }, parts, (state) => ({
    ...state,
    pending: null,
    assets: { ...state.assets, [key]: known },
  }))
}

async function createPolicy(
  { policy: { key, body }, instead }: StepOf<'create policy'>,
  parts: StepParts,
): Promise<void> {
  const creation = { kind: 'policy', name: key } as const
  const made = await intending(creation, parts, (asked) =>
    parts.client.createPolicy({ policy: body, ...asked }),
  )
  const { name, type, value } = body
  const written = { name, type, value }
  const retired = instead === undefined ? [] : [{ name: key, uuid: instead }]
  keepMade({ ...creation, id: made.uuid }, parts, (state) => ({
    ...state,
    pending: null,
    policies: {
      ...state.policies,
      [key]: { uuid: made.uuid, written, returned: readPolicy(made) },
    },
    retired: [...state.retired, ...retired],
  }))
}

async function intending<Made>(
  creation: Creation,
  { file, now, asked }: StepParts,
  create: (asked: Asked) => Promise<Made>,
): Promise<Made> {
  const onSend = (): void => {
    const at = new Date(now()).toISOString()
    file.save({ ...file.current(), pending: { ...creation, at } })
  }
  try {
    return await create({ ...asked(), onSend })
  } catch (error) {
    const isRefused = error instanceof ServiceError && !error.mayBeDone
    if (isRefused && file.current().pending !== null) {
      file.save({ ...file.current(), pending: null })
    }
    throw error
  }
}

/** Where the state cannot be saved, the id is in the error: nobody else has it. */
function keepMade(
  { kind, name, id }: Creation & { id: number | string },
  { file }: StepParts,
  withIt: (state: MonitoringState) => MonitoringState,
): void {
  try {
    file.save(withIt(file.current()))
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    const made = `${kind} ${name} was created as ${id}: run again with --adopt ${name}=${id}`
    throw new CommandError(error.reason, `${made}; ${error.message}`, { cause: error })
  }
}

/** The operations that change something. */
export type MonitoringWrites = Pick<
  ServiceClient,
  | 'createAsset'
  | 'replaceAsset'
  | 'toggleAsset'
  | 'createPolicy'
  | 'deletePolicy'
  | 'assignPolicy'
  | 'updatePolicy'
  | 'unassignPolicy'
>

/** What a step is taken with. */
interface StepParts {
  client: MonitoringWrites
  asked: () => Asked
  file: Pick<StateFile, 'current' | 'save'>
  cleanPastEvents: boolean
  now: () => number
}

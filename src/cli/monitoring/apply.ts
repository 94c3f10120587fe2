/**
 * `assets apply`: changes assets, policies and their assignments to what a monitoring file says.
 */
import { basename, dirname, extname, join } from 'node:path'
import { Command } from 'commander'
import type { ParsedFile } from '../../config/parse-file.ts'
import { canonicalJson } from '../../feed-types/field-reader.ts'
import { systemClock } from '../../lib/clock.ts'
import { createSecretBox } from '../../lib/sealed-secret.ts'
import type { CallOptions } from '../../upstream/call.ts'
import type { UpstreamClient } from '../../upstream/client.ts'
import { UpstreamError } from '../../upstream/error.ts'
import type { AssetReplacement } from '../../upstream/resources/assets.ts'
import { policyOperations } from '../../upstream/resources/policies.ts'
import { addServiceOptions, type ApiContext, withClient } from '../api/api-command.ts'
import {
  requireConfirmation,
  type CommonOptions,
  type Context,
  inputName,
  print,
  readText,
} from '../context.ts'
import { CommandError, pluralize } from '../terminal.ts'
import {
  type DataDigest,
  isNotFound,
  inspectAdopted,
  nameUpstreamError,
  readActual,
  refreshState,
  toAssetState,
  readUndescribed,
  toPolicyContent,
  findUnseenAssets,
} from './actual.ts'
import {
  appendAdoption,
  appendName,
  type AdoptionOptions,
  refuseUnresolved,
  refuseUnknownNames,
  applyAdoptions,
} from './adoptions.ts'
import {
  loadMonitoringFile,
  mistakesError,
  type MonitoringContent,
  parseMonitoring,
  type DesiredState,
  type DesiredAsset,
  toDesiredState,
} from './monitoring-file.ts'
import { planNotes, describeRisk, stepJson, stepLine, listUndescribed } from './plan-text.ts'
import {
  findImpossibleChanges,
  planChanges,
  refuseGone,
  refuseTwins,
  type PlanInput,
  type Step,
  type StepOf,
} from './plan.ts'
import {
  findAsset,
  type Intent,
  type KnownAsset,
  type MonitoringState,
  openStateFile,
  type PolicyContent,
  findPolicy,
  type StateFile,
  withoutPolicy,
} from './state-file.ts'

interface ApplyCommandOptions extends ApplyOptions, AdoptionOptions {
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
    .option('--adopt <name=id>', 'an asset or policy of the file is there already', appendAdoption)
    .option('--create-again <name>', 'what was created, or may have been, is not there', appendName)
    .action((options: ApplyCommandOptions) => applyFile(context, options))
}

async function applyFile(context: Context, options: ApplyCommandOptions): Promise<void> {
  const statePath = chooseStatePath(options)
  const { content, place } = await readMonitoring(context, options.file)
  const accountName = options.account ?? content.account
  const clientOptions = accountName === undefined ? options : { ...options, account: accountName }
  await withClient(context, clientOptions, async (api) => {
    const { account } = api.client
    const box = createSecretBox(() => account.apiKey.reveal())
    const desired = toDesiredState(content, (parts) => box.digest(parts))
    const digest: DataDigest = (data) => box.digest(['returned data', canonicalJson(data)])
    const file = openStateFile(statePath, account)
    const before = { desired, state: file.current(), doubts: options }
    const input = await readPlanInput(api, before, digest)
    const state = await inspectAdopted(context, options, { ...api, digest }, input)
    const plan = await makePlan(api, { ...input, state })
    refuseImpossible(plan, place, inputName(options.file))
    await applyPlan(context, options, { api, file, plan, digest })
  })
}

async function readMonitoring(
  context: Context,
  file: string,
): Promise<ParsedFile<MonitoringContent>> {
  if (file !== '-') return loadMonitoringFile(file, context.env)
  return parseMonitoring(await readText(context, file), inputName(file), context.env)
}

/** The state of `monitoring.yaml` is `monitoring.state.json` beside it. */
function chooseStatePath({ file, state }: ApplyCommandOptions): string {
  if (state !== undefined) return state
  if (file !== '-') return join(dirname(file), `${basename(file, extname(file))}.state.json`)
  const problem = 'standard input has no place for its state'
  throw new CommandError('mistake', `${problem}; name the file of earlier runs with --state`)
}

/** Reads what exists, and applies the operator's statements to the state. */
async function readPlanInput(
  { client, callOptions }: ApiContext,
  {
    desired,
    state,
    doubts,
  }: { desired: DesiredState; state: MonitoringState; doubts: AdoptionOptions },
  digest: DataDigest,
): Promise<PlanInput> {
  refuseUnknownNames(doubts, desired, state)
  refuseUnresolved(state, doubts)
  const actual = await readActual(client, callOptions, state, doubts.adopt)
  const input = { desired, actual, state: applyAdoptions({ desired, state, actual }, doubts) }
  refuseGone(input)
  refuseTwins(input, doubts.createAgain)
  return { ...input, state: refreshState(input, digest) }
}

/** Asks for undocumented operations only when policies that still exist are to be deleted. */
async function makePlan({ client, callOptions }: ApiContext, input: PlanInput): Promise<Plan> {
  const { desired, state, actual } = input
  const steps = planChanges(input)
  const toDelete = steps.flatMap((step) => (step.do === 'delete policy' ? [step.uuid] : []))
  const stillThere = toDelete.filter((uuid) => actual.policies.has(uuid))
  const notes = planNotes(input)
  if (stillThere.length === 0) return { desired, state, steps, notes }
  const undescribed = await readUndescribed(client, callOptions, stillThere)
  const finalSteps = planChanges({ ...input, actual: { ...actual, ...undescribed } })
  return { desired, state, steps: finalSteps, notes }
}

function refuseImpossible(
  { desired, state, steps }: Plan,
  place: ParsedFile<unknown>['place'],
  file: string,
): void {
  const mistakes = place(findImpossibleChanges(desired, state, steps))
  if (mistakes.length > 0) throw mistakesError(file, mistakes)
}

/**
 * Shows a plan, asks for confirmation, and runs its steps until one fails; then reports how many
 * were done.
 */

interface ApplyOptions {
  output: CommonOptions['output']
  plan?: true
  yes?: true
}

interface Plan {
  desired: DesiredState
  /** The state from which the plan starts, with the operator's statements applied. */
  state: MonitoringState
  steps: readonly Step[]
  notes: readonly string[]
}

interface ApplyParts {
  api: ApiContext
  file: StateFile
  plan: Plan
  digest: DataDigest
}

/** Throws what a step throws, and CommandError when the operator says no. */
async function applyPlan(
  context: Context,
  options: ApplyOptions,
  parts: ApplyParts,
): Promise<void> {
  const { file, plan } = parts
  const { steps, state, desired } = plan
  const isText = options.output === 'text'
  if (isText) context.terminal.print(planLines(context, plan, options).join('\n'))
  if (options.plan) return printJson(context, options, plan, 0)
  const risk = describeRisk(steps, desired.cleanPastEvents)
  if (risk !== undefined && !options.yes) await requireConfirmation(context, [risk])
  if (state !== file.current()) file.save(state)
  let doneCount = 0
  try {
    for (const step of steps) {
      context.terminal.progress(`${doneCount} of ${pluralize(steps.length, 'step')} done`)
      await runStep(step, parts)
      doneCount += 1
    }
  } catch (error) {
    context.terminal.progress('')
    if (isText) printStopped(context, plan, doneCount)
    // An error of the state file itself says what was not saved.
    if (isText && !(error instanceof CommandError)) context.terminal.printError(resumeHint)
    printJson(context, options, plan, doneCount)
    throw error
  }
  context.terminal.progress('')
  if (isText && doneCount > 0) context.terminal.print(`done: ${pluralize(doneCount, 'step')}`)
  printJson(context, options, plan, doneCount)
}

async function runStep(step: Step, { api, file, plan, digest }: ApplyParts): Promise<void> {
  const { client, callOptions } = api
  const { cleanPastEvents } = plan.desired
  const now = (): number => systemClock.now()
  await nameUpstreamError(
    nameStep(step),
    applyStep(step, { client, callOptions, file, cleanPastEvents, digest, now }),
  )
}

function nameStep(step: Step): string {
  if ('asset' in step) return `asset ${step.asset.key}`
  if ('policy' in step) return `policy ${step.policy.key}`
  return `${step.do.endsWith('asset') ? 'asset' : 'policy'} ${step.key}`
}

function planLines(
  { terminal }: Context,
  { steps, notes, desired, state }: Plan,
  { plan }: ApplyOptions,
): string[] {
  const undescribed = listUndescribed(steps)
  const isReached = steps.length === 0 && findUnseenAssets(desired, state).length === 0
  return [
    ...notes.map((note) => terminal.paint('dim', note)),
    ...steps.map((step) => {
      const { text, style } = stepLine(step, desired.cleanPastEvents)
      return terminal.paint(style, text)
    }),
    ...(undescribed.length === 0
      ? []
      : [`beyond the description of the API: ${undescribed.join(', ')}`]),
    ...(isReached ? ['nothing to do'] : []),
    ...(plan && steps.length > 0 ? [`${pluralize(steps.length, 'step')}; nothing was done`] : []),
  ]
}

function printStopped({ terminal }: Context, { steps, desired }: Plan, done: number): void {
  const formatLine = (step: Step): string => `  ${stepLine(step, desired.cleanPastEvents).text}`
  const [before, after] = [steps.slice(0, done), steps.slice(done)]
  if (before.length > 0) terminal.printError(['done:', ...before.map(formatLine)].join('\n'))
  terminal.printError(['not done:', ...after.map(formatLine)].join('\n'))
}

const resumeHint = 'what is done is in the state file; the next run goes on from there'

function printJson(
  context: Context,
  { output }: ApplyOptions,
  { steps, notes, desired }: Plan,
  done: number,
): void {
  if (output === 'text') return
  const json = {
    steps: steps.map((step, index) => ({ ...stepJson(step), done: index < done })),
    notes,
    beyond_description: listUndescribed(steps),
    clean_past_events: desired.cleanPastEvents,
    left: steps.length - done,
  }
  print(context, { output }, { json, lines: () => [] })
}

/**
 * Runs one step of a plan and saves its result in the state. Every step but a creation may be
 * repeated. Throws UpstreamError, and what the state file throws.
 */
export async function applyStep(step: Step, parts: StepParts): Promise<void> {
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
  const known = requireAsset(asset.key, parts)
  const body = toReplacement(asset, known)
  const replaced = await parts.client.replaceAsset({ id, asset: body, ...parts.callOptions() })
  const group = known.written?.['assets_group_id']
  const written = { ...asset.written, ...(group === undefined ? {} : { assets_group_id: group }) }
  saveAsset(
    asset.key,
    { ...known, ...toAssetState(replaced, known.disabled, parts.digest), written },
    parts,
  )
}

/** The whole asset as the API returned it last, with the fields of the file in their place. */
function toReplacement(
  { body }: DesiredAsset,
  { returned, disabled }: KnownAsset,
): AssetReplacement {
  const { assets_group_id: _group, ...inFile } = body
  const search_types = inFile.search_types as AssetReplacement['search_types'] // checked before: no ad
  return {
    ...returned,
    ...(disabled === null ? {} : { is_disabled: disabled }),
    ...inFile,
    search_types,
  }
}

async function toggleAsset(
  step: StepOf<'enable asset' | 'disable asset'>,
  parts: StepParts,
): Promise<void> {
  const known = requireAsset(step.key, parts)
  const isDisabled = step.do === 'disable asset'
  // Written first: after a lost answer the next run sees a disabled asset, and must know by whom.
  if (isDisabled) saveAsset(step.key, { ...known, disabled_by_file: true }, parts)
  const toggled = await parts.client.toggleAsset({
    id: known.id,
    isDisabled,
    ...parts.callOptions(),
  })
  const switched = { disabled: isDisabled, disabled_by_file: isDisabled }
  saveAsset(
    step.key,
    { ...known, ...toAssetState(toggled, isDisabled, parts.digest), ...switched },
    parts,
  )
}

async function updatePolicy(step: StepOf<'update policy'>, parts: StepParts): Promise<void> {
  const { uuid, policy } = step
  const { name, value } = policy.body
  const request = { policy_uuid: uuid, name, value }
  const updated = await parts.client.call(policyOperations.update, request, parts.callOptions())
  const state = parts.file.current()
  const known = { uuid, written: pickContent(policy.body), returned: toPolicyContent(updated) }
  parts.file.save({ ...state, policies: { ...state.policies, [policy.key]: known } })
}

async function assignPolicy(
  step: StepOf<'assign policy' | 'unassign policy'>,
  parts: StepParts,
): Promise<void> {
  const { key, assets } = step
  const { client, file } = parts
  const identifier_ids = assets.map((asset) => requireAsset(asset, parts).id)
  if (step.do === 'assign policy') {
    const { uuid } = requirePolicy(key, parts)
    const assignment = { identifier_ids, clean_past_events: parts.cleanPastEvents }
    const request = { policy_uuid: uuid, ...assignment }
    await client.call(policyOperations.assign, request, parts.callOptions())
  } else {
    const request = { policy_uuid: step.uuid, identifier_ids }
    await client.call(policyOperations.unassign, request, parts.callOptions())
  }
  const state = file.current()
  const changed = assets.map((asset): [string, KnownAsset] => {
    const known = requireAsset(asset, parts)
    const others = known.policies.filter((policy) => policy !== key)
    return [asset, { ...known, policies: step.do === 'assign policy' ? [...others, key] : others }]
  })
  file.save({ ...state, assets: { ...state.assets, ...Object.fromEntries(changed) } })
}

/**
 * Never cleans past events, whatever the file says: what these identifiers matched before stays
 * theirs.
 */
async function assignToOthers(
  { key, ids }: StepOf<'assign to others'>,
  { client, callOptions, ...parts }: StepParts,
): Promise<void> {
  const { uuid } = requirePolicy(key, parts)
  const request = { policy_uuid: uuid, identifier_ids: [...ids], clean_past_events: false }
  await client.call(policyOperations.assign, request, callOptions())
}

async function deletePolicy(step: StepOf<'delete policy'>, parts: StepParts): Promise<void> {
  const { key, uuid, why } = step
  try {
    await parts.client.call(policyOperations.delete, { policy_uuid: uuid }, parts.callOptions())
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  const state = parts.file.current()
  const retired = state.retired.filter((one) => one.uuid !== uuid)
  parts.file.save(
    why === 'left' ? withoutPolicy({ ...state, retired }, key) : { ...state, retired },
  )
}

function pickContent({ name, type, value }: PolicyContent): PolicyContent {
  return { name, type, value }
}

function saveAsset(key: string, known: KnownAsset, { file }: StepParts): void {
  const state = file.current()
  file.save({ ...state, assets: { ...state.assets, [key]: known } })
}

function requireAsset(key: string, { file }: Pick<StepParts, 'file'>): KnownAsset {
  const known = findAsset(file.current(), key)
  if (known === undefined) throw new Error(`the state has no asset ${key}`)
  return known
}

function requirePolicy(key: string, { file }: Pick<StepParts, 'file'>): { uuid: string } {
  const known = findPolicy(file.current(), key)
  if (known === undefined) throw new Error(`the state has no policy ${key}`)
  return known
}

/**
 * A creation is saved as an intent before it is sent, so that one whose answer is lost is never
 * sent again without the operator's consent. The intent is removed when the request was not sent or
 * was refused.
 */

type Creation = Omit<Intent, 'at'>

async function createAsset({ asset }: StepOf<'create asset'>, parts: StepParts): Promise<void> {
  const { key, body, written } = asset
  const creation = { kind: 'asset', name: key } as const
  const created = await withIntent(creation, parts, (options) =>
    parts.client.createAsset({ asset: body, ...options }),
  )
  const seen = toAssetState(created, false, parts.digest)
  const known = { ...seen, id: created.id, written, disabled_by_file: false, policies: [] }
  saveCreated({ ...creation, id: created.id }, parts, (state) => ({
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
  const created = await withIntent(creation, parts, (options) =>
    parts.client.call(policyOperations.create, body, options),
  )
  const { name, type, value } = body
  const written = { name, type, value }
  const retired = instead === undefined ? [] : [{ name: key, uuid: instead }]
  saveCreated({ ...creation, id: created.uuid }, parts, (state) => ({
    ...state,
    pending: null,
    policies: {
      ...state.policies,
      [key]: { uuid: created.uuid, written, returned: toPolicyContent(created) },
    },
    retired: [...state.retired, ...retired],
  }))
}

async function withIntent<Made>(
  creation: Creation,
  { file, now, callOptions }: StepParts,
  create: (callOptions: CallOptions) => Promise<Made>,
): Promise<Made> {
  const onSend = (): void => {
    const at = new Date(now()).toISOString()
    file.save({ ...file.current(), pending: { ...creation, at } })
  }
  try {
    return await create({ ...callOptions(), onSend })
  } catch (error) {
    const isRefused = error instanceof UpstreamError && !error.mayBeDone
    if (isRefused && file.current().pending !== null) {
      file.save({ ...file.current(), pending: null })
    }
    throw error
  }
}

/** When the state cannot be saved, the error holds the id: it is known nowhere else. */
function saveCreated(
  { kind, name, id }: Creation & { id: number | string },
  { file }: StepParts,
  addCreated: (state: MonitoringState) => MonitoringState,
): void {
  try {
    file.save(addCreated(file.current()))
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    const createdText = `${kind} ${name} was created as ${id}: run again with --adopt ${name}=${id}`
    throw new CommandError(error.reason, `${createdText}; ${error.message}`, { cause: error })
  }
}

/** The API operations that change something. */
export type MonitoringWrites = Pick<
  UpstreamClient,
  'createAsset' | 'replaceAsset' | 'toggleAsset' | 'call'
>

/** What a step needs. */
interface StepParts {
  client: MonitoringWrites
  callOptions: () => CallOptions
  file: Pick<StateFile, 'current' | 'save'>
  cleanPastEvents: boolean
  digest: DataDigest
  now: () => number
}

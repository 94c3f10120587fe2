/** `monitoring plan` and `monitoring apply`: bring assets and policies to what a file says. */
import { Command } from 'commander'
import { withhold } from '../../masking/masking.ts'
import { addServiceOptions, type ApiContext, withClient } from '../api/api-command.ts'
import {
  type CommonOptions,
  type Context,
  inputName,
  print,
  readText,
  requireConfirmation,
} from '../context.ts'
import { pluralize, sanitize, type Style } from '../terminal.ts'
import { mistakesError, parseMonitoring, toDesiredState } from './monitoring-file.ts'
import { type Plan, planChanges, type Step } from './plan.ts'
import { carryOut, readActual } from './service.ts'

interface PlanOptions extends CommonOptions {
  account?: string
  file: string
  prune?: true
}

interface ApplyOptions extends PlanOptions {
  yes?: true
}

export function monitoringCommand(context: Context): Command {
  const plan = addPlanOptions(new Command('plan'))
    .description('list the changes that a monitoring file asks for; change nothing')
    .action((options: PlanOptions) => showPlan(context, options))
  const apply = addPlanOptions(new Command('apply'))
    .description('create and change assets and policies as a monitoring file says')
    .option('--yes', 'do not ask')
    .action((options: ApplyOptions) => applyFile(context, options))
  return new Command('monitoring').addCommand(plan).addCommand(apply)
}

function addPlanOptions(command: Command): Command {
  return addServiceOptions(command, ['text', 'json'])
    .requiredOption('-f, --file <file>', 'the monitoring file; - for standard input')
    .option('--prune', 'delete assets and policies of the tenant that the file does not name')
}

async function showPlan(context: Context, options: PlanOptions): Promise<void> {
  await withPlan(context, options, async (plan) => {
    if (options.output === 'text') context.terminal.print(planLines(context, plan).join('\n'))
    else printJson(context, options, plan, () => 'planned')
  })
}

async function applyFile(context: Context, options: ApplyOptions): Promise<void> {
  await withPlan(context, options, async (plan, api) => {
    if (options.output === 'text') context.terminal.print(planLines(context, plan).join('\n'))
    const risk = describeRisk(plan.steps)
    if (risk !== undefined && !options.yes) await requireConfirmation(context, [risk])
    await runSteps(context, options, plan, api)
  })
}

/** Throws CommandError with every mistake of the file, those that only the service shows included. */
async function withPlan(
  context: Context,
  options: PlanOptions,
  use: (plan: Plan, api: ApiContext) => Promise<void>,
): Promise<void> {
  const place = inputName(options.file)
  const file = parseMonitoring(await readText(context, options.file), place, context.env)
  const account = options.account ?? file.content.account
  await withClient(context, { ...options, ...(account && { account }) }, async (api) => {
    const desired = toDesiredState(file.content)
    const plan = planChanges(desired, await readActual(api, desired), options.prune)
    if (plan.findings.length > 0) throw mistakesError(place, file.place([...plan.findings]))
    await use(plan, api)
  })
}

/** Runs the steps until one fails; then prints how far it came. */
async function runSteps(
  context: Context,
  options: ApplyOptions,
  plan: Plan,
  api: ApiContext,
): Promise<void> {
  const { terminal } = context
  const isText = options.output === 'text'
  const known = { assets: plan.assets, policies: plan.policies }
  let done = 0
  try {
    for (const step of plan.steps) {
      terminal.progress(`${done} of ${pluralize(plan.steps.length, 'step')} done`)
      await carryOut(step, known, api)
      done += 1
    }
  } catch (error) {
    terminal.progress('')
    if (isText) terminal.printError(stopLine(plan, done))
    throw error
  } finally {
    terminal.progress('')
    if (!isText) printJson(context, options, plan, (at) => (at < done ? 'done' : 'not done'))
  }
  if (isText && done > 0) terminal.print(`done: ${pluralize(done, 'step')}`)
}

function stopLine({ steps }: Plan, done: number): string {
  const [step] = steps.slice(done)
  const where = step === undefined ? '' : stepLine(step).text
  return `${done} of ${pluralize(steps.length, 'step')} done; stopped at: ${where}; the next run reads what is there, and goes on from that`
}

function printJson(
  context: Context,
  options: CommonOptions,
  { steps, unnamed }: Plan,
  stateOf: (index: number) => 'planned' | 'done' | 'not done',
): void {
  const json = {
    steps: steps.map((step, index) => ({ ...stepJson(step), state: stateOf(index) })),
    not_in_file: unnamed,
  }
  print(context, options, { json, lines: () => [] })
}

/** Without what is written, which may be a secret. */
function stepJson(step: Step): Record<string, unknown> {
  const { do: verb, ...fields } = step
  const shown = Object.entries(fields).filter(([field]) => field !== 'body' && field !== 'name')
  const name = 'name' in step ? { name: shownName(step) } : {}
  return { do: verb, ...Object.fromEntries(shown), ...name }
}

function planLines({ terminal }: Context, { steps, unnamed }: Plan): string[] {
  const isPruned = steps.some((step) => step.do.startsWith('delete'))
  const others = [
    ...(unnamed.assets > 0 ? [pluralize(unnamed.assets, 'asset')] : []),
    ...(unnamed.policies > 0 ? [pluralize(unnamed.policies, 'policy', 'policies')] : []),
  ].join(' and ')
  const left = `not in the file: ${others}; --prune deletes them`
  return [
    ...steps.map((step) => terminal.paint(stepLine(step).style, stepLine(step).text)),
    steps.length === 0 ? 'nothing to do' : pluralize(steps.length, 'step'),
    ...(others === '' || isPruned ? [] : [terminal.paint('dim', left)]),
  ]
}

function stepLine(step: Step): { text: string; style: Style } {
  const [style, sign] = stepStyles[step.do]
  return { text: `${sign} ${step.do} ${step.key}${formatDetail(step)}`, style }
}

const [adds, changes, removes] = [
  ['green', '+'],
  ['yellow', '~'],
  ['red', '-'],
] as const

const stepStyles: Readonly<Record<Step['do'], readonly [Style, string]>> = {
  'create asset': adds,
  'replace asset': changes,
  'enable asset': adds,
  'disable asset': removes,
  'create policy': adds,
  'update policy': changes,
  'assign policy': adds,
  'unassign policy': removes,
  'delete policy': removes,
  'delete asset': removes,
}

function formatDetail(step: Step): string {
  if ('name' in step) return `: ${sanitize(step.type, 40)} "${shownName(step)}"`
  if ('fields' in step) return ` (${step.id}): ${step.fields.join(', ')}`
  if ('assets' in step)
    return ` ${step.do === 'assign policy' ? 'to' : 'from'} ${step.assets.join(', ')}`
  if ('uuid' in step) return ` (${step.uuid})`
  return 'body' in step ? `: ${step.body.type}` : ''
}

/** An asset that watches for a secret may be called like it. */
function shownName({ type, name }: { type: string; name: string }): string {
  return type === 'secret' ? 'secret' : sanitize(withhold(name), 80)
}

/** undefined: the steps only add. */
function describeRisk(steps: readonly Step[]): string | undefined {
  const created = steps.flatMap((step) => (step.do === 'create asset' ? [step.key] : []))
  const isNew = (step: Step): boolean => step.do === 'disable asset' && created.includes(step.key)
  const risky = steps.filter((step) => stepStyles[step.do] !== adds && !isNew(step))
  const counts = [...Map.groupBy(risky, (step) => step.do)].map(([verb, { length }]) => {
    const [act = '', thing = ''] = verb.split(' ')
    return `${act} ${pluralize(length, thing, thing === 'policy' ? 'policies' : undefined)}`
  })
  const isCleaning = steps.some((step) => step.do === 'assign policy' && step.clean_past_events)
  const risks = [...counts, ...(isCleaning ? ['remove past events'] : [])]
  const isLossy = steps.some((step) => step.do === 'delete asset')
  const loss = isLossy ? '; the service may delete what it found for deleted assets' : ''
  return risks.length === 0 ? undefined : `This will ${risks.join(', ')}${loss}.`
}

/** Shows a plan, asks, and takes its steps until one is refused; then says what was done and what not. */
import { systemClock } from '../../runtime/clock.ts'
import { askFirst } from '../ask-first.ts'
import { print, type CommonOptions, type Context } from '../context.ts'
import { CommandError } from '../command-error.ts'
import type { OpenService } from '../query/service-command.ts'
import { counted } from '../words.ts'
import { unseenAssets } from './look-at-adopted.ts'
import { nameServiceError } from './name-service-error.ts'
import { riskIn, undescribedIn } from './plan-risk.ts'
import type { Step } from './plan-step.ts'
import { stepLine } from './plan-words.ts'
import type { MonitoringState, StateFile } from './state-file.ts'
import { stepJson } from './step-json.ts'
import { takeStep } from './take-step.ts'
import type { Wanted } from './wanted.ts'

export interface CarryOptions {
  output: CommonOptions['output']
  plan?: true
  yes?: true
}

export interface Planned {
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
export async function carryOut(
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

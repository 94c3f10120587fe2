/** `assets apply`: brings assets, their policies and who has which to the state of a file. */
import { basename, dirname, extname, join } from 'node:path'
import { Command } from 'commander'
import type { ParsedFile } from '../../config/parse-file.ts'
import { createSecretBox } from '../../runtime/sealed-secret.ts'
import { CommandError } from '../command-error.ts'
import type { Context } from '../context.ts'
import { placeOf } from '../query/json-input.ts'
import { addServiceOptions, withClient, type OpenService } from '../query/service-command.ts'
import { carryOut, type CarryOptions, type Planned } from './carry-out.ts'
import {
  anotherAdoption,
  anotherName,
  refuseDoubt,
  refuseUnknownNames,
  type Doubts,
} from './doubts.ts'
import { impossibleChanges } from './impossible.ts'
import { lookAtAdopted } from './look-at-adopted.ts'
import { refuseGone, refuseTwins } from './lost-and-found.ts'
import {
  loadMonitoringFile,
  mistakesIn,
  parseMonitoring,
  type MonitoringContent,
} from './monitoring-file.ts'
import { planChanges } from './plan-changes.ts'
import { notesOn } from './plan-notes.ts'
import type { Scene } from './plan-step.ts'
import { readActual, readBeyond } from './read-actual.ts'
import { settleDoubts } from './settle-doubts.ts'
import { openStateFile, type MonitoringState } from './state-file.ts'
import { wantedOf, type Wanted } from './wanted.ts'

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

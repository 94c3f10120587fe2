import { counted } from '../words.ts'
import type { Step } from './plan-step.ts'
import { losersWords } from './plan-words.ts'

/** Operations of a plan that the API's description does not have. */
export function undescribedIn(steps: readonly Step[]): string[] {
  const isGrouped = (step: Step): boolean =>
    step.do === 'create asset' && step.asset.body.assets_group_id !== undefined
  return [
    ...(steps.some(isGrouped) ? ['the group of a new asset'] : []),
    ...(steps.some((step) => step.do === 'assign to others') ? ['GET of assignments'] : []),
    ...(steps.some((step) => step.do === 'update policy') ? ['PUT of a policy'] : []),
    ...(steps.some((step) => step.do === 'unassign policy') ? ['DELETE of assignments'] : []),
  ]
}

/** What cannot be taken back, as a sentence; undefined where there is nothing of it. */
export function riskIn(steps: readonly Step[], cleanPastEvents: boolean): string | undefined {
  const count = (kind: Step['do']): number =>
    steps.filter((step) => step.do === kind && !isOfNew(step)).length
  const said = [
    of(count('replace asset'), 'asset', 'replaced (what others changed is undone)'),
    of(count('disable asset'), 'asset', 'disabled'),
    of(count('update policy'), 'policy', 'changed'),
    of(count('unassign policy'), 'policy', 'taken from assets'),
    of(count('delete policy'), 'policy', 'deleted'),
    ...(cleanPastEvents && count('assign policy') > 0 ? ['past events taken away'] : []),
  ].filter((part) => part !== '')
  if (said.length === 0) return undefined
  return [said.join(', '), ...lossesIn(steps)].map((sentence) => `${sentence}.`).join(' ')
}

/** An asset that is created disabled was never enabled. */
function isOfNew(step: Step): boolean {
  return step.do === 'disable asset' && step.id === undefined
}

function lossesIn(steps: readonly Step[]): string[] {
  return steps.flatMap((step) => {
    const words = step.do === 'delete policy' ? losersWords(step.losers, '') : ''
    return step.do === 'delete policy' && words !== '' ? [`Policy ${step.key}: ${words}`] : []
  })
}

function of(count: number, thing: string, done: string): string {
  if (count === 0) return ''
  return `${counted(count, thing, thing === 'policy' ? 'policies' : `${thing}s`)} ${done}`
}

/** A plan as people read it, and as machines do; never a value of an asset, which may be a secret. */
import type { Style } from '../terminal.ts'
import type { Others, Step, StepOf, WhyPolicy } from './plan-step.ts'

export interface StepLine {
  text: string
  style: Style
}

export function stepLine(step: Step, cleanPastEvents: boolean): StepLine {
  return { text: `${marks[step.do]} ${wordsOf(step, cleanPastEvents)}`, style: styles[step.do] }
}

const marks: Record<Step['do'], string> = {
  'create policy': '+',
  'create asset': '+',
  'assign policy': '+',
  'assign to others': '+',
  'enable asset': '+',
  'replace asset': '~',
  'update policy': '~',
  'disable asset': '-',
  'unassign policy': '-',
  'delete policy': '-',
}

const styles: Record<Step['do'], Style> = {
  'create policy': 'green',
  'create asset': 'green',
  'assign policy': 'green',
  'assign to others': 'green',
  'enable asset': 'green',
  'replace asset': 'yellow',
  'update policy': 'yellow',
  'disable asset': 'red',
  'unassign policy': 'red',
  'delete policy': 'red',
}

function wordsOf(step: Step, cleanPastEvents: boolean): string {
  switch (step.do) {
    case 'create asset':
      return `asset ${step.asset.key}: create, type ${step.asset.body.type}`
    case 'replace asset':
      return `asset ${step.asset.key} (${step.id}): replace, for ${step.fields.join(', ')}; the rest of it, whether it is enabled too, goes back to how the last run saw it`
    case 'enable asset':
    case 'disable asset':
      return switchWords(step)
    case 'create policy':
      return `policy ${step.policy.key}: create, ${step.policy.body.type}${whyWords[step.why]}`
    case 'update policy':
      return `policy ${step.policy.key} (${step.uuid}): update${whyWords[step.why]}${sharedWords(step.others)}`
    case 'assign policy': {
      const clean = cleanPastEvents ? '; past events that it does not let through go' : ''
      return `policy ${step.key}: assign to ${step.assets.join(', ')}${driftWords('taken it from', step.drifted)}${clean}`
    }
    case 'assign to others':
      return `policy ${step.key}: assign to ${idWords(step.ids)} too, not of this file, which have the one before it`
    case 'unassign policy':
      return `policy ${step.key}: take from ${step.assets.join(', ')}${driftWords('given it to', step.drifted)}`
    case 'delete policy':
      return `policy ${step.key} (${step.uuid}): delete, ${step.why === 'left' ? 'it left the file' : 'its successor is there'}${losersWords(step.losers, '; ')}`
  }
}

const whyWords: Record<WhyPolicy, string> = {
  new: '',
  changed: '; it has changed in the file',
  drifted: '; somebody has changed it at the service',
  unassign: '; it takes the place of the one that too many assets have',
}

function driftWords(verb: string, assets: readonly string[]): string {
  return assets.length === 0 ? '' : `; somebody has ${verb} ${assets.join(', ')}`
}

function switchWords(step: StepOf<'enable asset' | 'disable asset'>): string {
  const { do: verb, key, id, why } = step
  const reason = why === 'left' ? '; it left the file, and the API deletes no asset' : ''
  return `asset ${key}${id === undefined ? '' : ` (${id})`}: ${verb === 'enable asset' ? 'enable' : 'disable'}${reason}`
}

function sharedWords(others: Others): string {
  if (others === 'unknown' || others.length === 0) return ''
  return `; ${idWords(others)}, not of this file, ${others.length === 1 ? 'has' : 'have'} it too`
}

/** Who loses a policy that is deleted; '' where nobody does. */
export function losersWords(losers: Others, before: string): string {
  if (losers === 'unknown') {
    return `${before}whatever has it and is not of this file loses it, and the server does not tell what that is`
  }
  if (losers.length === 0) return ''
  return `${before}${idWords(losers)}, not of this file, ${losers.length === 1 ? 'loses' : 'lose'} it`
}

const mostIds = 20

function idWords(ids: readonly number[]): string {
  const shown = ids.slice(0, mostIds).join(', ')
  return ids.length > mostIds ? `${shown} and ${ids.length - mostIds} more` : shown
}

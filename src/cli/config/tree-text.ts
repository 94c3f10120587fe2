/** The routing tree in lines, as `check` prints it. */
import type { RouteNode } from '../../routing/router.ts'
import { formatDuration } from '../terminal.ts'

/** Prints the grouping only where it differs from the parent's. */
export function nodeLines(node: RouteNode, parent?: RouteNode): string[] {
  const indent = '  '.repeat(node.path.length - 1)
  const grouping = formatGrouping(node)
  const { muteTimeIntervals: mutes, onMute } = node
  return [
    `${indent}${nodeHead(node)}`,
    ...(parent && formatGrouping(parent) === grouping ? [] : [`${indent}    ${grouping}`]),
    ...(mutes.length > 0
      ? [`${indent}    muted by ${mutes.join(', ')}: ${muteEffects[onMute]}`]
      : []),
    ...node.routes.flatMap((child) => nodeLines(child, node)),
  ]
}

const muteEffects = { hold: 'held until it is over', drop: 'dropped' }

function nodeHead({ name, path, matchers, sinks, ...node }: RouteNode): string {
  const unmatched = path.length === 1 ? 'the rest' : 'every event'
  const when = matchers.length === 0 ? unmatched : matchers.map(({ text }) => text).join(' and ')
  const mode = node.mode === 'shadow' ? ' (shadow: recorded, never sent)' : ''
  const goesOn = node.continue && !node.isShadowItself ? ', and the search goes on' : ''
  return `${name}${mode}: ${when} → ${sinks.join(', ')}${goesOn}`
}

type Grouping = Pick<RouteNode, 'groupBy' | 'groupWaitMs' | 'groupIntervalMs'>

export function formatGrouping({ groupBy, groupWaitMs, groupIntervalMs }: Grouping): string {
  if (groupWaitMs === 0) return 'every event by itself, at once'
  const by = groupBy.length === 0 ? 'in one group' : `grouped by ${groupBy.join(', ')}`
  return `${by}: after ${formatDuration(groupWaitMs)}, then every ${formatDuration(groupIntervalMs)} at the most`
}

/** What is in force: the routing tree, silences, mutes and the configuration, and who did what. */
import { z } from 'zod'
import { describeConfig } from '../../config/describe.ts'
import { formatDuration } from '../../lib/time-zone.ts'
import { actWords } from '../../operator/acts/act-words.ts'
import { readAllSilences, silenceJson } from '../../operator/silences.ts'
import { createRouter, listNodes, type RouteNode } from '../../routing/router.ts'
import type { Silence } from '../../routing/silences.ts'
import { describeInterval, isActive } from '../../routing/time-intervals.ts'
import { type KnownAct, readActs } from '../../store/history/acts.ts'
import { readCounts } from '../../store/history/dated-counts.ts'
import type { Asker } from '../asker.ts'
import { type AnswerOf, field, question } from '../question.ts'
import { addressOf } from '../output/urls.ts'
import { toIso } from './event.ts'
import { visibleSilences } from './silences.ts'

export type RulesAnswer = AnswerOf<typeof rulesQuestion>

const dayMs = 86_400_000

export const rulesQuestion = question({
  path: '/rules',
  summary: 'routes with their events of 7 days, silences with what each hid, mutes, configuration',
  query: z.object({ account: field.account }),
  async ask(asker) {
    const { config, engine, store, user } = asker
    const isWhole = user.accounts === 'all'
    const counts = await countRules(asker)
    const { silences } = await readAllSilences(store, config)
    const { root } = createRouter(config.route)
    const { number, sinceMs, by } = engine.generation
    return {
      // the tree and the configuration name customers
      tree: isWhole ? listNodes(root).map((node) => describeNode(node, counts)) : [],
      silences: visibleSilences(silences, user).map((one) => describeSilence(asker, one, counts)),
      mutes: isWhole ? listMutes(asker, listNodes(root)) : [],
      configuration: {
        generation: String(number),
        since: toIso(sinceMs),
        by: (isWhole && by) || null,
        text: isWhole ? describeConfig(config) : '',
      },
      acts: isWhole ? (await readActs(store, 50)).map(describeAct) : [],
    }
  },
})

function describeAct({ atMs, ...note }: KnownAct) {
  const { act, items, more } = note
  return { at: toIso(atMs), ...note, words: actWords(act, items.length + more) }
}

interface RuleCounts {
  /** Events by route, with those of the routes below it: of the last seven days, and as long as the history. */
  routes: Map<string, { week: number; all: number }>
  /** Items by the id of a silence. */
  silences: Map<string, number>
}

async function countRules({ ledgers, config, nowMs }: Asker): Promise<RuleCounts> {
  const counts: RuleCounts = { routes: new Map(), silences: new Map() }
  const fromMs = nowMs - config.ledger.historyRetentionMs
  for (const ledger of ledgers) {
    for (const one of await readCounts(ledger, { by: 'day', fromMs, toMs: nowMs })) {
      if (one.kind === 'rule' && one.reason === 'silence') {
        counts.silences.set(one.rule, (counts.silences.get(one.rule) ?? 0) + one.count)
      }
      if (one.kind !== 'route') continue
      const { week, all } = counts.routes.get(one.route) ?? { week: 0, all: 0 }
      const isRecent = one.atMs > nowMs - 7 * dayMs
      counts.routes.set(one.route, {
        week: week + (isRecent ? one.count : 0),
        all: all + one.count,
      })
    }
  }
  return counts
}

function describeNode(node: RouteNode, { routes }: RuleCounts) {
  const { week, all } = routes.get(node.name) ?? { week: 0, all: 0 }
  const { name, path, matchers, sinks, mode, muteTimeIntervals } = node
  return {
    name,
    path,
    depth: path.length - 1,
    matchers: matchers.map(({ text }) => text),
    sinks,
    events_7d: week,
    never: all === 0,
    mode,
    mutes: [...muteTimeIntervals],
    summary: groupingOf(node),
  }
}

function groupingOf({
  groupBy,
  groupWaitMs,
  groupIntervalMs,
  continue: goesOn,
}: RouteNode): string {
  const alike = groupBy.length === 0 ? '' : ` of the same ${groupBy.join(' and ')}`
  const [wait, every] = [groupWaitMs, groupIntervalMs].map(formatDuration)
  const sends =
    groupWaitMs === 0
      ? `sends at once, then at most one message${alike} every ${every}`
      : `waits ${wait} for more${alike}, then sends at most one message every ${every}`
  return `${sends}${goesOn ? '; goes on to the next' : ''}`
}

function describeSilence({ config, nowMs }: Asker, silence: Silence, { silences }: RuleCounts) {
  const { id, startsAtMs, endsAtMs, maxSeverity, machines, origin, owner, reason } = silence
  const since = `${Math.floor(config.ledger.historyRetentionMs / dayMs)}d`
  return {
    id,
    phase: String(silenceJson(silence, nowMs)['phase']).replaceAll('_', ' '),
    starts: toIso(startsAtMs),
    until: toIso(endsAtMs),
    severity: maxSeverity,
    machines,
    origin,
    owner,
    reason,
    matchers: silence.matchers.map(({ text }) => text),
    hidden: silences.get(id) ?? 0,
    hidden_url: addressOf('/not-told', { reason: 'silence', rule: id, since }),
  }
}

function listMutes({ config, nowMs }: Asker, nodes: readonly RouteNode[]) {
  return Object.entries(config.timeIntervals).map(([name, intervals]) => ({
    name,
    text: intervals.map(describeInterval).join('; '),
    routes: nodes.filter((node) => node.muteTimeIntervals.includes(name)).map((node) => node.name),
    active: intervals.some((interval) => isActive(interval, nowMs)),
  }))
}

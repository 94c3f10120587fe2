/** Acts on what reads and sends: sinks are tested, paused, resumed and flushed, feeds paused and resumed. */
import { z } from 'zod'
import { formatUtcTime } from '../../lib/time-zone.ts'
import { flushDigests, flushedWords } from '../../operator/acts/flush-sink.ts'
import {
  pauseFeed,
  pauseSink,
  resumedLine,
  resumeFeed,
  resumeSink,
} from '../../operator/acts/pauses.ts'
import { isProblem, runProbes } from '../../operator/probes/probe.ts'
import { sinkReachProbe, sinkSendProbe } from '../../operator/probes/sink-probes.ts'
import type { SinkConfig } from '../../sinks/sink-types.ts'
import { act, type Actor } from '../act.ts'
import { PageError } from '../page-error.ts'

const sink = z.object({ name: z.string().describe('Name of the sink.') })
const feed = z.object({ name: z.string().describe('Name of the feed.') })
const reason = z
  .string('say why')
  .trim()
  .min(1, 'say why')
  .max(200, 'at most 200 characters')
  .regex(/^\P{Cc}*$/u, 'in one line')
  .describe('Why; whoever looks at it reads this.')

/** A sink sends for all accounts. Throws PageError. */
function requireSink({ user, config }: Actor, name: string): SinkConfig {
  if (user.accounts !== 'all') {
    const problem = 'a sink sends for all accounts, and you see some of them'
    throw new PageError('forbidden', problem, 'ask somebody who sees all')
  }
  const found = config.sinks.find((one) => one.name === name)
  if (found) return found
  throw new PageError('not_found', 'no such sink is configured')
}

export const testSink = act({
  path: '/sinks/:name/test',
  summary: 'send one message marked TEST to each destination of a sink',
  input: sink,
  async perform(actor, { name }) {
    const needs = { sink: requireSink(actor, name), config: actor.config, env: {} }
    const { signal } = new AbortController()
    const found = await runProbes([sinkReachProbe, sinkSendProbe], needs, signal)
    const said = found.map(({ detail, remedy }) => (remedy ? `${detail}; ${remedy}` : detail))
    return { done: !found.some(isProblem), said }
  },
})

export const pauseSinkAct = act({
  path: '/sinks/:name/pause',
  summary: 'keep what waits for a sink until it is resumed',
  input: sink.extend({ reason }),
  async perform(actor, { name, reason: why }) {
    requireSink(actor, name)
    const by = { name, reason: `${why} (${actor.user.name})` }
    const sinceMs = await pauseSink(actor.store, actor.config, by)
    return { done: true, said: [`${name} is paused since ${formatUtcTime(sinceMs)}.`] }
  },
})

export const resumeSinkAct = act({
  path: '/sinks/:name/resume',
  summary: 'end a pause; try a disabled or failing sink again',
  input: sink,
  async perform(actor, { name }) {
    requireSink(actor, name)
    const resumed = await resumeSink(actor.store, actor.config, name)
    return { done: true, said: [`${resumedLine(name, resumed)}.`] }
  },
})

export const flushSink = act({
  path: '/sinks/:name/flush',
  summary: 'end the window of a digest now and send it',
  input: sink,
  async perform(actor, { name }) {
    requireSink(actor, name)
    const flushed = await flushDigests(actor.store, actor.config.sinks, name)
    if (flushed === undefined) throw new PageError('conflict', 'this sink has no digest')
    return { done: true, said: flushed.map((label) => `${label}: ${flushedWords}.`) }
  },
})

/** The feed of an account that the actor sees. Throws PageError. */
function requireFeed({ config, ledgers }: Actor, name: string) {
  const feed = config.feeds.find((one) => one.name === name)
  const ledger = ledgers.find(({ account }) => account === feed?.account)
  if (feed && ledger) return { feed, ledger }
  throw new PageError('not_found', 'no such feed is visible to you')
}

export const pauseFeedAct = act({
  path: '/feeds/:name/pause',
  summary: 'stop reading a feed until it is resumed; nothing is lost',
  input: feed.extend({ reason }),
  async perform(actor, { name, reason: why }) {
    const found = requireFeed(actor, name)
    const sinceMs = await pauseFeed(found.ledger, found.feed, `${why} (${actor.user.name})`)
    return { done: true, said: [`${name} is paused since ${formatUtcTime(sinceMs)}.`] }
  },
})

export const resumeFeedAct = act({
  path: '/feeds/:name/resume',
  summary: 'read a feed on from where it stopped',
  input: feed,
  async perform(actor, { name }) {
    const wasPaused = await resumeFeed(requireFeed(actor, name).ledger, name)
    const said = wasPaused ? 'is resumed; it is read on within seconds' : 'was not paused'
    return { done: wasPaused, said: [`${name} ${said}.`] }
  },
})

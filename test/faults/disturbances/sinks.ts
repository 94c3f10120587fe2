/** What happens at the sinks: every status, silence, cuts at every moment, SMTP refusals at every verb. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FaultInput } from '../../../src/sandbox/server.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import type { Disturbance } from '../rig/disturbance.ts'
import { sinkNames, type Stage } from '../rig/stage.ts'

const hooks = '/hooks/*'
const slack = '/slack/*'

const statuses = [
  301, 302, 400, 401, 403, 404, 408, 409, 410, 413, 418, 422, 425, 429, 500, 502, 503, 504,
]

const slackWords: readonly (readonly [number, string])[] = [
  [400, 'invalid_payload'],
  [400, 'no_text'],
  [429, 'rate_limited'],
  [500, 'rollup_error'],
  [403, 'invalid_token'],
  [403, 'action_prohibited'],
  [404, 'no_service'],
  [404, 'channel_not_found'],
  [410, 'channel_is_archived'],
]

const verbs = ['smtp:connect', 'smtp:mail', 'smtp:rcpt', 'smtp:data'] as const
const replies = [421, 451, 550, 554]

/** A fault for so long, striking some of what passes. */
function faulty(name: string, ...faults: FaultInput[]): Disturbance {
  return { name, strike: (stage, ms) => strikeWith(stage, faults, ms) }
}

async function strikeWith(stage: Stage, faults: readonly FaultInput[], ms: number): Promise<void> {
  await closeCircuits(stage)
  const { sandbox } = stage
  const mends = faults.map((fault) => sandbox.faults.add({ probability: 0.5, ...fault }))
  await sleep(ms)
  for (const mend of mends) mend()
}

/** As if the last harm were long over: otherwise an open circuit would keep the next from being met. */
async function closeCircuits({ store }: Stage): Promise<void> {
  const keys = createKeys('tocsin')
  for (const sink of sinkNames) await store.client.del(keys.shared('circuit', sink))
}

/** One of many each time, so that a long run meets them all. */
function oneOf(name: string, faults: readonly FaultInput[]): Disturbance {
  return {
    name,
    weight: 4,
    async strike(stage, ms) {
      const fault = faults[stage.random.int(0, faults.length - 1)]
      if (fault) await strikeWith(stage, [fault], ms)
    },
  }
}

export const sinkDisturbances: readonly Disturbance[] = [
  oneOf(
    'webhook: a status code',
    statuses.map((status) => ({ on: hooks, effect: 'status', status })),
  ),
  oneOf(
    'Slack: one of its error words',
    slackWords.map(([status, message]) => ({
      on: slack,
      effect: 'status',
      status,
      body: 'text',
      message,
    })),
  ),
  oneOf(
    'SMTP: 4xx or 5xx at a verb',
    verbs.flatMap((on) => replies.map((status) => ({ on, effect: 'status', status }))),
  ),
  faulty('SMTP: one of two recipients refused', {
    on: 'smtp:rcpt',
    recipient: 'a@example.com',
    effect: 'status',
    status: 451,
  }),
  faulty(
    'every sink: accepted, and the answer lost',
    { on: hooks, effect: 'lose-answer', probability: 0.1 },
    { on: slack, effect: 'lose-answer', probability: 0.1 },
    { on: 'smtp:data', effect: 'lose-answer', probability: 0.1 },
  ),
  faulty(
    'every sink: cut before anything is taken',
    { on: hooks, effect: 'refuse', probability: 0.2 },
    { on: slack, effect: 'refuse', probability: 0.2 },
    { on: 'smtp:mail', effect: 'refuse', probability: 0.2 },
  ),
  faulty(
    'every sink: never answers',
    { on: hooks, effect: 'hang', times: 2 },
    { on: slack, effect: 'hang', times: 1 },
    // at the end of the data an answer is waited for ten minutes, as RFC 5321 asks
    { on: 'smtp:connect', effect: 'hang', times: 1 },
  ),
  faulty('webhook: answers a byte at a time', { on: hooks, effect: 'drip', times: 2, ms: 300 }),
  {
    name: 'one sink down for long while the others flow',
    weight: 0.3,
    strike: (stage) =>
      strikeWith(
        stage,
        [{ on: '/hooks/single', effect: 'status', status: 503, probability: 1 }],
        stage.longMs,
      ),
  },
  {
    name: 'sinks: no TLS there, names that do not resolve',
    weight: 0.3,
    async strike(stage, ms) {
      await closeCircuits(stage)
      await stage.roll('astray')
      await sleep(ms)
      await stage.roll('plain')
    },
  },
]

/** What happens at the service: it fails, lies, refuses, its clock is wrong, its items are monstrous. */
import { setTimeout as sleep } from 'node:timers/promises'
import { toSearchItem } from '../../../src/sandbox/api/event-items.ts'
import type { FaultInput } from '../../../src/sandbox/server.ts'
import type { Disturbance } from '../rig/disturbance.ts'
import type { Stage } from '../rig/stage.ts'

const searches = '/firework/v4/events/identifier_groups/*'

const faults: Record<string, Omit<FaultInput, 'on'>> = {
  'service: 500': { effect: 'status', status: 500 },
  'service: 502 in plain text': { effect: 'status', status: 502, body: 'text' },
  'service: 504': { effect: 'status', status: 504 },
  'service: never answers': { effect: 'hang', times: 1 },
  'service: refuses the connection': { effect: 'refuse' },
  'service: answer lost': { effect: 'lose-answer' },
  'service: cut in the middle of the body': { effect: 'cut' },
  'service: invalid JSON': { effect: 'invalid-json' },
  'service: wrong shapes': { effect: 'wrong-shape' },
  'service: 401, token expired': { effect: 'status', status: 401, times: 1 },
  'service: 403': { effect: 'status', status: 403, times: 2 },
  'service: 429 with Retry-After': {
    effect: 'status',
    status: 429,
    headers: { 'retry-after': '1' },
    times: 2,
  },
  'service: 429 without Retry-After': { effect: 'status', status: 429, times: 1 },
}

const failures = Object.entries(faults).map(([name, fault]): Disturbance => ({
  name,
  async strike({ sandbox }, ms) {
    const mend = sandbox.faults.add({ on: searches, probability: 0.7, ...fault })
    await sleep(ms)
    mend()
  },
}))

const tokens: Disturbance = {
  name: 'service: every token forgotten',
  async strike({ sandbox }, ms) {
    sandbox.tokens.revokeAll()
    await sleep(ms)
  },
}

const cursors: Disturbance = {
  name: 'service: every cursor refused',
  async strike({ sandbox }, ms) {
    sandbox.expireCursors()
    await sleep(ms)
  },
}

/** The account is paused for half a minute after that. */
const revoked: Disturbance = {
  name: 'service: 401, key revoked',
  weight: 0.3,
  async strike({ sandbox }, ms) {
    for (const key of sandbox.apiKeys) sandbox.tokens.refuseKey(key)
    await sleep(ms)
    for (const key of sandbox.apiKeys) sandbox.tokens.admitKey(key)
  },
}

const skewed = [10, -10].map((minutes): Disturbance => ({
  name: `service: clock ${Math.abs(minutes)} min ${minutes > 0 ? 'ahead' : 'behind'}`,
  async strike({ skew, sandbox }, ms) {
    skew.ms = minutes * 60_000
    await sleep(ms)
    sandbox.addEvents(3, plainly)
    skew.ms = 0
  },
}))

const plainly = { severity: 'high', ignoredAtMs: null, groupIds: [1042] }

const odd: Disturbance = {
  name: 'service: monstrous, malformed and repeated items',
  async strike(stage, ms) {
    addOddEvents(stage)
    await sleep(ms)
  },
}

function addOddEvents({ sandbox }: Stage): void {
  const [event] = sandbox.addEvents(1, plainly)
  if (!event) return
  const long = 'a leaked line\n'.repeat(80_000)
  const tags = Array.from({ length: 10_000 }, (_, i) => `tag-${i}`)
  sandbox.addEvents(1, { ...plainly, matchedAtMs: null })
  sandbox.addEvents(1, { ...plainly, highlights: { content: [long] } })
  sandbox.addEvents(1, { ...plainly, tags })
  sandbox.addRawItem(1042, toSearchItem(event)) // twice on one page
  sandbox.changeEvent(event.uid, { notes: 'other words than before', tags: ['changed'] })
  for (const item of [null, 7, [], {}, { metadata: null }, { metadata: { uid: [5] } }]) {
    sandbox.addRawItem(1042, item)
  }
}

export const serviceDisturbances: readonly Disturbance[] = [
  ...failures,
  tokens,
  cursors,
  ...skewed,
  odd,
  revoked,
]

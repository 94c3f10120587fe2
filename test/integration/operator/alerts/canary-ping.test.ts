import { expect, onTestFinished, test } from 'vitest'
import { createLogger } from '../../../../src/lib/logger.ts'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import {
  type CanaryPing,
  createCanary,
  createCanaryPing,
} from '../../../../src/operator/alerts/canary.ts'
import { sendPing } from '../../../../src/sinks/http.ts'
import type { AccountLedger } from '../../../../src/store/account-ledger.ts'
import { beginAttempt, settleAttempt } from '../../../support/attempts.ts'
import { type HttpServer, startHttpServer } from '../../../support/http-server.ts'
import { redisForTests } from '../../../support/ledger.ts'
import { aNoticesRig } from '../../../support/self-alerts.ts'

const tests = redisForTests()
const hour = 3_600_000

interface Rig {
  clock: { atMs: number }
  /** The dead-man switch. */
  server: HttpServer
  /** One more replica. */
  replica(isActive?: () => boolean): CanaryPing
  sendCanary(): Promise<void>
  /** What the ledger says once a destination has, or has not, taken the canary of this hour. */
  settle(destination: string, outcome: 'delivered' | 'dead'): Promise<void>
  log(): string
}

async function aRig(): Promise<Rig> {
  const keys = tests.keys()
  const ledger: AccountLedger = await tests.ledger({ keys })
  const { clock, publish: tell } = aNoticesRig({ ledger: ledger, keys })
  const server = await startHttpServer()
  onTestFinished(() => server.stop())
  let logged = ''
  const logger = createLogger({
    level: 'debug',
    destination: { write: (line) => (logged += line) },
  })
  const target = { url: secretFromText(`${server.url}/ping/tok-1?key=qry-2`), allowPrivate: true }
  const canary = { everyMs: hour, sinks: ['soc', 'oncall'] }
  const parts = { ledger: ledger, keys, clock, logger }
  return {
    clock,
    server,
    log: () => logged,
    replica: (isActive = () => true) =>
      createCanaryPing({
        ...parts,
        isActive,
        everyMs: hour,
        ping: () => sendPing(target),
      }),
    sendCanary: () =>
      createCanary({ config: canary, publish: tell, isActive: () => true, clock }).canaryOnce(),
    async settle(destination, outcome) {
      const slotMs = Math.floor(clock.atMs / hour) * hour
      const recordId = ledger.fingerprints.recordId(`canary/tocsin/${slotMs}`)
      const index = ['soc', 'oncall:ann', 'oncall:bob'].indexOf(destination)
      const ref = `i:${recordId}:${index}:${destination.split(':')[0]}`
      await beginAttempt(ledger, ref, 't', 60_000)
      await settleAttempt(ledger, { ref, token: 't', replica: 'r' }, { outcome })
    },
  }
}

async function settleAll(rig: Rig): Promise<void> {
  for (const destination of ['soc', 'oncall:ann', 'oncall:bob']) {
    await rig.settle(destination, 'delivered')
  }
}

test('the switch is pinged once for each canary that every destination took, by whichever replica', async () => {
  const rig = await aRig()
  const replicas = [1, 2, 3].map(() => rig.replica())
  const lookAll = (): Promise<unknown> => Promise.all(replicas.map((one) => one.pingOnce()))
  await rig.sendCanary()
  await rig.settle('soc', 'delivered')
  await rig.settle('oncall:ann', 'delivered')
  await lookAll()
  expect(rig.server.requests).toEqual([])
  await rig.settle('oncall:bob', 'delivered')
  await lookAll()
  await lookAll()
  await rig.replica().pingOnce()
  expect(rig.server.requests).toMatchObject([{ method: 'GET', path: '/ping/tok-1?key=qry-2' }])

  rig.clock.atMs += hour
  await lookAll()
  expect(rig.server.requests).toHaveLength(1)
  await rig.sendCanary()
  await settleAll(rig)
  await lookAll()
  expect(rig.server.requests).toHaveLength(2)
})

test('a canary that one sink did not take is never pinged for', async () => {
  const rig = await aRig()
  await rig.sendCanary()
  await rig.settle('soc', 'dead')
  await rig.settle('oncall:ann', 'delivered')
  await rig.settle('oncall:bob', 'delivered')
  await rig.replica().pingOnce()
  expect(rig.server.requests).toEqual([])
})

test('one that arrives only after the next was sent is pinged for, one that is older is not', async () => {
  const rig = await aRig()
  const firstMs = rig.clock.atMs
  await rig.sendCanary()
  rig.clock.atMs = firstMs + 2 * hour - 1
  const ping = rig.replica()
  await ping.pingOnce()
  rig.clock.atMs = firstMs
  await settleAll(rig)
  rig.clock.atMs = firstMs + 2 * hour
  await ping.pingOnce()
  expect(rig.server.requests).toHaveLength(0)
  rig.clock.atMs -= 1
  await ping.pingOnce()
  expect(rig.server.requests).toHaveLength(1)
})

test.each([
  ['refuses', { status: 500 }, 'the address answered 500'],
  ['redirects', { status: 302, headers: { location: '/elsewhere' } }, 'the address answered 302'],
  ['cuts the connection', 'cut', 'cut before the answer was read'],
] as const)(
  'a switch that %s is logged once, without its address, and not pinged again',
  async (_does, answer, cause) => {
    const rig = await aRig()
    rig.server.script(answer)
    await rig.sendCanary()
    await settleAll(rig)
    const ping = rig.replica()
    for (let i = 0; i < 3; i += 1) await ping.pingOnce()
    await rig.replica().pingOnce()
    expect(rig.server.requests).toHaveLength(1)
    expect(rig.log().split('the ping for the canary failed')).toHaveLength(2)
    expect(rig.log()).toContain(cause)
    expect(rig.log()).not.toMatch(/tok-1|qry-2|127\.0\.0\.1/)
  },
)

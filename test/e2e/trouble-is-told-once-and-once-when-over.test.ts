import { expect, test } from 'vitest'
import { systemClock, type Clock } from '../../src/lib/clock.ts'
import { startHttpServer } from '../support/http-server.ts'
import { expectConservation, silent } from '../support/ledger.ts'
import { nothingPending, until } from '../support/rehearsal.ts'
import { slack, startRig } from '../support/rig.ts'

const settleMs = 10 * 60_000

// The next canary is far away: the clock is set ahead, and a webhook of then is refused now.
test('two replicas tell of a refused key once, and once when it works again', async () => {
  await using rig = await startRig()
  await using deadMan = Object.assign(await startHttpServer(), {
    [Symbol.asyncDispose]: (): Promise<void> => deadMan.stop(),
  })
  const { sandbox, hasAll } = rig
  const yaml = rig.yaml({
    feeds: { brand: 'initial_poll: send' },
    sinks: { siem: '', soc: `${slack(sandbox)}, limit: 20/s` },
    route: ', routes: [{matchers: [\'type!="none"\'], sinks: [siem]}]',
    more: `self_alerts: {sink: soc}
canary: {every: 30d, sinks: [soc, siem], ping: '${deadMan.url}/ping', allow_private: true}`,
  })
  let aheadMs = 0
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + aheadMs }
  const naming = (uid: string): string[] =>
    sandbox.received.slack.map(({ body }) => body).filter((body) => body.includes(uid))
  const notices = (): string[] => naming('notice/tocsin/')
  const start = () => rig.start(yaml, silent, clock)
  const [{ app, ledger }] = await Promise.all([start(), start()])
  const first = sandbox.addEvent()
  await until('an event arrives', () => hasAll('siem', [first]))

  sandbox.tokens.refuseKey('fw_sandbox')
  await until('the trouble is told', () => notices().length > 0)
  sandbox.tokens.admitKey('fw_sandbox')
  const second = sandbox.addEvent()
  await until('it works again', () => hasAll('siem', [second]))
  const noted = (): Promise<string | null> =>
    ledger.redis.hget('{tocsin}:notices', 'account-refused-main')
  await until('that is seen', async () => (await noted())?.includes('goneMs') ?? false)
  aheadMs = settleMs
  await until('the end is told', () => notices().length > 1)
  await until('all is settled', () => nothingPending(app))

  const told = notices().map((body) => /notice\/tocsin\/([\w-]+)-\d+-(\w+)/.exec(body)?.slice(1))
  expect(told).toEqual([
    ['account-refused-main', 'begin'],
    ['account-refused-main', 'end'],
  ])
  const slots = naming('canary/tocsin/').map((body) => /canary\/tocsin\/\d+/.exec(body)?.[0])
  expect(slots.length).toBeGreaterThan(0)
  expect(new Set(slots).size).toBe(slots.length)
  expect(deadMan.requests.map(({ path }) => path)).toEqual(slots.map(() => '/ping'))
  await expectConservation(ledger)
}, 300_000)

/** `sinks list|pause|resume` against a ledger that the daemon's own scripts filled. */
import { expect, test } from 'vitest'
import { createCircuit } from '../../../src/delivery/circuit.ts'
import { recipientHash } from '../../../src/sinks/destinations.ts'
import { attemptOf } from '../../support/attempts.ts'
import { pastThisMillisecond, redisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aSocScene } from './soc-scene.ts'
import { tocsin } from './tocsin.ts'

const tests = redisForTests()

test('a sink whose only recipient takes nothing is resumed with it', async () => {
  const { keys, ledger, config } = await aSocScene(tests, (text) =>
    text.replace(', bob@example.com]', ']'),
  )
  const circuit = createCircuit(ledger.redis, keys)
  const ann = `oncall:${recipientHash('ann@example.com')}`
  const sent = { reason: 'recipient_deferred', answer: '452 4.2.2 mailbox full' } as const
  for (let count = 0; count < 5; count += 1) await circuit.report(ann, 'fault', sent)
  expect((await tocsin('sinks', 'resume', 'oncall', ...config)).code).toBe(0)
  expect((await circuit.read(ann, Date.now())).state).toBe('half_open')
})

test.each(['recipient_deferred', 'rejected'] as const)(
  'what waits for another try (%s) goes when its sink is resumed, though nothing had paused it',
  async (reason) => {
    const { ledger, config } = await aSocScene(tests)
    await takeIn(ledger, [routed({ uid: 'a/b/full' }, ['oncall'])])
    const ref = `i:${ledger.fingerprints.recordId('a/b/full')}:0:oncall`
    const inMs = 3_600_000
    const failed = { outcome: 'retry', inMs, counts: true, reason } as const
    await attemptOf(ledger, ref, failed)
    const isDue = async (): Promise<boolean> =>
      Number(await ledger.redis.zscore(ledger.key('due', 'oncall'), ref)) <= Date.now()
    expect(await isDue()).toBe(false)
    const json = await tocsin('sinks', 'resume', 'oncall', '--output=json', ...config)
    expect(JSON.parse(json.out)).toMatchObject({ was_paused: false, retries_due: 1 })
    expect((await tocsin('sinks', 'resume', 'oncall', ...config)).out).toBe(
      'oncall was not paused\n',
    )
    expect(await isDue()).toBe(true)
  },
)

test('of several recipients the one that takes nothing is named', async () => {
  const { keys, ledger, config } = await aSocScene(tests)
  const circuit = createCircuit(ledger.redis, keys)
  const bob = `oncall:${recipientHash('bob@example.com')}`
  const sent = { reason: 'recipient_deferred', answer: '452 4.2.2 mailbox full' } as const
  for (let count = 0; count < 5; count += 1) await circuit.report(bob, 'fault', sent)
  const json = await tocsin('sinks', 'list', '--output=json', ...config)
  expect(JSON.parse(json.out)).toContainEqual(
    expect.objectContaining({
      sink: 'oncall',
      circuit: 'closed',
      recipients: [expect.objectContaining({ recipient: 'bob@example.com', circuit: 'open' })],
    }),
  )
})

test('a paused sink gets nothing until it is resumed, and keeps the time of its first pause', async () => {
  const { ledger, keys, config } = await aSocScene(tests)
  const circuit = createCircuit(ledger.redis, keys)
  await tocsin('sinks', 'pause', 'soc', '--reason=first', ...config)
  expect(await circuit.admit('soc', 1)).toMatchObject({ count: 0 })
  const { sinceMs } = (await circuit.read('soc', Date.now())).paused!
  await pastThisMillisecond(ledger.redis)
  await tocsin('sinks', 'pause', 'soc', '--reason=second', ...config)
  expect((await circuit.read('soc', Date.now())).paused).toEqual({ reason: 'second', sinceMs })
  await tocsin('sinks', 'resume', 'soc', ...config)
  expect(await circuit.admit('soc', 1)).toMatchObject({ count: 1 })
})

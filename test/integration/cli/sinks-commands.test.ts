/** `sinks list|pause|resume` against a ledger that the daemon's own scripts filled. */
import { expect, test } from 'vitest'
import { createCircuit } from '../../../src/delivery/circuit.ts'
import { recipientHash } from '../../../src/sinks/destinations.ts'
import { pastThisMillisecond, redisForTests } from '../../support/ledger.ts'
import { aSocScene } from './soc-scene.ts'
import { tocsin } from './tocsin.ts'

const tests = redisForTests()

test('of several recipients the one that takes nothing is named, with its trouble', async () => {
  const { keys, ledger, config } = await aSocScene(tests)
  const circuit = createCircuit(ledger.redis, keys)
  const bob = `oncall:${recipientHash('bob@example.com')}`
  const sent = { reason: 'recipient_deferred', answer: '452 4.2.2 mailbox full' } as const
  for (let count = 0; count < 5; count += 1) await circuit.report(bob, 'fault', sent)
  const { out } = await tocsin('sinks', 'list', ...config)
  expect(out).toMatch(
    /^ {2}problem {2}bob@example\.com alone: failing since .*, 5 times, last: recipient_deferred, 452 4\.2\.2 mailbox full/m,
  )
  expect(out).not.toContain('ann@example.com alone')
  const json = JSON.parse(
    (await tocsin('sinks', 'list', '--output=json', ...config)).out,
  ) as object[]
  expect(json).toContainEqual(
    expect.objectContaining({
      sink: 'oncall',
      circuit: 'closed',
      recipients: [expect.objectContaining({ recipient: 'bob@example.com', circuit: 'open' })],
    }),
  )
})

test('a paused sink gets nothing until it is resumed, and says why', async () => {
  const { ledger, keys, config } = await aSocScene(tests)
  const circuit = createCircuit(ledger.redis, keys)
  const reason = ['--reason', 'mail server moves']
  const paused = await tocsin('sinks', 'pause', 'soc', ...reason, ...config)
  expect(paused.out).toMatch(/^soc is paused since \S+ \S+ UTC: mail server moves\n/)
  expect(paused.code).toBe(0)
  expect(await circuit.admit('soc', 1)).toMatchObject({ count: 0 })
  expect(await circuit.admit('lake', 1)).toMatchObject({ count: 1 })
  expect((await tocsin('sinks', 'list', ...config)).out).toMatch(
    /^soc +slack +paused .*\n {2}problem {2}paused since .*: mail server moves; /m,
  )
  const { sinceMs } = (await circuit.read('soc', Date.now())).paused!
  await pastThisMillisecond(ledger.redis)
  await tocsin('sinks', 'pause', 'soc', '--reason=second', ...config)
  expect((await circuit.read('soc', Date.now())).paused).toEqual({ reason: 'second', sinceMs })
  const resumed = await tocsin('sinks', 'resume', 'soc', ...config)
  expect(resumed.out).toBe('soc is resumed; a running daemon sends what was kept within seconds\n')
  expect(await circuit.admit('soc', 1)).toMatchObject({ count: 1 })
  expect((await tocsin('sinks', 'resume', 'soc', ...config)).out).toBe('soc was not paused\n')
})

test('a sink that is down is tried at once when it is resumed, and the command says since when it was down', async () => {
  const { ledger, keys, config } = await aSocScene(tests)
  const circuit = createCircuit(ledger.redis, keys)
  await circuit.report('soc', 'broken')
  const { out } = await tocsin('sinks', 'resume', 'soc', ...config)
  expect(out).toMatch(
    /^soc is tried again within seconds; its circuit has been open since \S+ \S+ UTC\n$/,
  )
  expect(await circuit.admit('soc', 9)).toMatchObject({ count: 1, isProbe: true })
  await circuit.report('soc', 'fault', { isProbe: true })
  const json = await tocsin('sinks', 'resume', 'soc', '--output=json', ...config)
  expect(JSON.parse(json.out)).toMatchObject({ was_open: true, was_paused: false })
})

test('a sink whose only recipient takes nothing is shown as open, and resumed with it', async () => {
  const { keys, ledger, config } = await aSocScene(tests, (text) =>
    text.replace(', bob@example.com]', ']'),
  )
  const circuit = createCircuit(ledger.redis, keys)
  const ann = `oncall:${recipientHash('ann@example.com')}`
  const sent = { reason: 'recipient_deferred', answer: '452 4.2.2 mailbox full' } as const
  for (let count = 0; count < 5; count += 1) await circuit.report(ann, 'fault', sent)
  const { out } = await tocsin('sinks', 'list', ...config)
  expect(out).toMatch(
    /^oncall +email +open .*\n {2}problem {2}circuit open; failing since .*, 5 times, last: recipient_deferred, 452 4\.2\.2 mailbox full/m,
  )
  expect((await tocsin('sinks', 'resume', 'oncall', ...config)).code).toBe(0)
  expect((await circuit.read(ann, Date.now())).state).toBe('half_open')
})

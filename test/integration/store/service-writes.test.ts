/** The record of who asked the service to change which event or credential. */
import { expect, test } from 'vitest'
import {
  noteWrite,
  noteWriteOutcome,
  readWrites,
} from '../../../src/store/history/service-writes.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()

const hash = 'c0ffee12c0ffee12'

test('each request has its own outcome, also where two people act at once', async () => {
  const ledger = await tests.ledger()
  const anas = await noteWrite(ledger, { by: 'ana', action: 'ignore', targets: ['paste/a'] })
  const bens = await noteWrite(ledger, {
    by: 'ben',
    action: 'restore',
    targets: ['paste/b', 'paste/a'],
  })
  await noteWrite(ledger, { by: 'cem', action: 'tag', targets: ['paste/a'] })
  await noteWriteOutcome(ledger, bens, 'refused')
  await noteWriteOutcome(ledger, anas, 'done')
  expect(await readWrites(ledger, 'paste/a')).toMatchObject([
    { by: 'ana', action: 'ignore', outcome: 'done' },
    { by: 'ben', action: 'restore', outcome: 'refused' },
    { by: 'cem', action: 'tag', outcome: 'asked' },
  ])
  expect(await readWrites(ledger, 'paste/b')).toMatchObject([{ by: 'ben', outcome: 'refused' }])
})

test('what is far back is found, and no hash of a credential is stored', async () => {
  const ledger = await tests.ledger()
  const request = { by: 'ana', action: 'ignore' }
  const id = await noteWrite(ledger, { ...request, targets: [hash] })
  const others = Array.from({ length: 600 }, () =>
    noteWrite(ledger, { ...request, targets: ['paste/a'] }),
  )
  await Promise.all(others)
  await noteWriteOutcome(ledger, id, 'done')
  expect(await readWrites(ledger, hash)).toMatchObject([{ ...request, outcome: 'done' }])
  expect(await readWrites(ledger, 'paste/a')).toHaveLength(600)
  const stored = await tests.redis.xrange(ledger.key('writes'), '-', '+')
  expect(JSON.stringify(stored)).not.toContain(hash)
})

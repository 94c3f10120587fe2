/** The record of who asked the service to change which event or credential. */
import { expect, test } from 'vitest'
import { noteTriage, noteTriageOutcome, readTriage } from '../../../src/store/triage.ts'
import { redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()

const hash = 'c0ffee12c0ffee12'

test('each request has its own outcome, also where two people act at once', async () => {
  const ledger = await tests.ledger()
  const anas = await noteTriage(ledger, { by: 'ana', action: 'ignore', targets: ['paste/a'] })
  const bens = await noteTriage(ledger, {
    by: 'ben',
    action: 'restore',
    targets: ['paste/b', 'paste/a'],
  })
  await noteTriage(ledger, { by: 'cem', action: 'tag', targets: ['paste/a'] })
  await noteTriageOutcome(ledger, bens, 'refused')
  await noteTriageOutcome(ledger, anas, 'done')
  expect(await readTriage(ledger, 'paste/a')).toMatchObject([
    { by: 'ana', action: 'ignore', outcome: 'done' },
    { by: 'ben', action: 'restore', outcome: 'refused' },
    { by: 'cem', action: 'tag', outcome: 'asked' },
  ])
  expect(await readTriage(ledger, 'paste/b')).toMatchObject([{ by: 'ben', outcome: 'refused' }])
})

test('what is far back is found, and no hash of a credential is stored', async () => {
  const ledger = await tests.ledger()
  const request = { by: 'ana', action: 'ignore' }
  const id = await noteTriage(ledger, { ...request, targets: [hash] })
  const others = Array.from({ length: 600 }, () =>
    noteTriage(ledger, { ...request, targets: ['paste/a'] }),
  )
  await Promise.all(others)
  await noteTriageOutcome(ledger, id, 'done')
  expect(await readTriage(ledger, hash)).toMatchObject([{ ...request, outcome: 'done' }])
  expect(await readTriage(ledger, 'paste/a')).toHaveLength(600)
  const stored = await tests.redis.xrange(ledger.key('triage'), '-', '+')
  expect(JSON.stringify(stored)).not.toContain(hash)
})

import { expect, test } from 'vitest'
import {
  createDetailJobs,
  type DetailJobs,
  type DetailJobsOptions,
} from '../../../src/delivery/send/full-events.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { Keys } from '../../../src/redis/keys.ts'
import type { ItemChange } from '../../../src/store/pending-items.ts'
import { readRecord } from '../../../src/store/records.ts'
import { redisForTests, routed, silent, takeIn } from '../../support/ledger.ts'
import { shortTimings, until } from '../../support/rehearsal.ts'
import { stillClock } from '../../support/still-clock.ts'

const tests = redisForTests()

type Given = Partial<DetailJobsOptions> & Pick<DetailJobsOptions, 'findLedger' | 'fetchDetail'>

function aDetailJobs(keys: Keys, given: Given): DetailJobs {
  return createDetailJobs({
    isForeign: () => false,
    batchWaits: {},
    release: () => undefined,
    redis: tests.redis,
    keys,
    clock: systemClock,
    logger: silent,
    timings: { ...shortTimings, detailWaitMs: 60_000 },
    ...given,
  })
}

test('a record that wants its full event is asked for once, though it is told of twice, and no other is', async () => {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys, account: 'main' })
  const asked: string[] = []
  const jobs = aDetailJobs(keys, {
    findLedger: () => ledger,
    fetchDetail(_account, uid) {
      asked.push(uid)
      return new Promise((resolve) => setTimeout(resolve, 100, 'unavailable'))
    },
  })
  try {
    const accepted = await takeIn(ledger, [routed({ uid: 'first' }, ['soc'], true)])
    const made = accepted.status === 'committed' ? accepted.changes : []
    await jobs.add('main', made)
    await jobs.add('main', made)
    const second = routed({ uid: 'second' }, ['soc'], true)
    const later = await takeIn(ledger, [routed({ uid: 'as it is' }), second])
    await jobs.add('main', later.status === 'committed' ? later.changes : [])
    jobs.start()
    await until('both were asked for', () => new Set(asked).size === 2)
    expect(await tests.redis.exists(`${keys.queuePrefix}:detail:meta`)).toBe(1)
  } finally {
    await jobs.stop(3_000)
  }
  expect(asked.toSorted()).toEqual(['first', 'second'])
})

test('a full event that is kept already is not asked for again, and what waits for it goes on', async () => {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys, account: 'main' })
  let asked = 0
  const released: ItemChange[][] = []
  const jobs = aDetailJobs(keys, {
    findLedger: () => ledger,
    fetchDetail: () => Promise.resolve(((asked += 1), 'unavailable' as const)),
    batchWaits: { soc: false },
    release: (_account, made) => void released.push(made),
    timings: shortTimings,
  })
  const { signal } = new AbortController()
  const event = routed({ uid: 'first' }, ['soc'], true)
  const work = {
    account: 'main',
    recordId: ledger.fingerprints.recordId('first'),
    deadlineMs: Date.now() + 60_000,
  }
  try {
    await takeIn(ledger, [event])
    await jobs.fetchOnce(work, signal)
    await jobs.fetchOnce(work, signal)
  } finally {
    await jobs.stop(3_000)
  }
  expect(asked).toBe(1)
  expect(released.map((made) => made.length)).toEqual([1, 0])
})

test('a full event says whether its machine was seen before', async () => {
  const keys = tests.keys()
  const ledger = await tests.ledger({ keys, account: 'main' })
  const jobs = aDetailJobs(keys, {
    findLedger: () => ledger,
    fetchDetail: () =>
      Promise.resolve({ victim_information: { hardware: ['HOSTNAME: DESKTOP-7'] } }),
  })
  const recordIds = ['a/b/1', 'a/b/2'].map((uid) => ledger.fingerprints.recordId(uid))
  try {
    const events = ['a/b/1', 'a/b/2'].map((uid) => routed({ uid, type: 'stealer_log' }, [], true))
    await takeIn(ledger, events)
    for (const recordId of recordIds) {
      const work = { account: 'main', recordId, deadlineMs: Date.now() + 60_000 }
      await jobs.fetchOnce(work, new AbortController().signal)
    }
  } finally {
    await jobs.stop(3_000)
  }
  expect((await readRecord(ledger, recordIds[1]!))?.seenBefore).toMatchObject([
    { kind: 'host', times: 1, recordId: recordIds[0] },
  ])
})

test.each<[string, Partial<DetailJobsOptions>]>([
  ['that a newer configuration brought', { isForeign: () => true }],
  ['that it has not opened yet', { findLedger: () => undefined }],
])(
  'the full events of an account %s are left to others, each after one look',
  async (_why, older) => {
    const keys = tests.keys()
    const ledger = await tests.ledger({ keys, account: 'main' })
    const asked: string[] = []
    const jobsOf = (owner: string, given: Partial<DetailJobsOptions> = {}) =>
      aDetailJobs(keys, {
        findLedger: () => ledger,
        fetchDetail: async () => (asked.push(owner), 'unavailable'),
        ...given,
      })
    // its rest never ends
    const [one, other] = [jobsOf('older', { ...older, clock: stillClock() }), jobsOf('newer')]
    const uids = Array.from({ length: 20 }, (_, n) => `e/${n}`)
    /** Ids of the jobs that were taken and given back. */
    const givenBack = async (): Promise<(string | undefined)[]> => {
      const notes = await tests.redis.xrange(`${keys.queuePrefix}:detail:events`, '-', '+')
      const of = (fields: string[], name: string) => fields[fields.indexOf(name) + 1]
      const back = notes.filter(([, fields]) => of(fields, 'prev') === 'active')
      return back
        .filter(([, fields]) => of(fields, 'event') === 'waiting')
        .map(([, fields]) => of(fields, 'jobId'))
    }
    one.start()
    try {
      const wanted = uids.map((uid) => routed({ uid }, ['soc'], true))
      const accepted = await takeIn(ledger, wanted)
      await other.add('main', accepted.status === 'committed' ? accepted.changes : [])
      await until('the older one has had one', async () => (await givenBack()).length > 0)
      other.start()
      await until('all were asked for', () => asked.length === uids.length)
      const back = await givenBack()
      expect(back).toHaveLength(new Set(back).size)
    } finally {
      await Promise.all([one.stop(3_000), other.stop(3_000)])
    }
    expect(new Set(asked)).toEqual(new Set(['newer']))
  },
)

test('full events that an organization is slow to give keep no other organization waiting', async () => {
  const keys = tests.keys()
  const ledgers = new Map([
    ['slow', await tests.ledger({ keys, account: 'slow' })],
    ['quick', await tests.ledger({ keys, account: 'quick' })],
  ])
  const asked: string[] = []
  const jobs = aDetailJobs(keys, {
    findLedger: (account) => ledgers.get(account),
    async fetchDetail(account, _uid, signal) {
      asked.push(account)
      if (account === 'slow') await systemClock.sleep(60_000, signal)
      return 'unavailable'
    },
  })
  try {
    for (const [account, count] of [
      ['slow', 30],
      ['quick', 1],
    ] as const) {
      const events = Array.from({ length: count }, (_none, at) =>
        routed({ uid: `${account}-${at}` }, ['soc'], true),
      )
      const accepted = await takeIn(ledgers.get(account)!, events)
      expect(accepted.status).toBe('committed')
      await jobs.add(account, accepted.status === 'committed' ? accepted.changes : [])
    }
    jobs.start()
    await until('the quick one was asked', () => asked.includes('quick'))
  } finally {
    await jobs.stop(3_000)
  }
})

import { expect, test } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { sumPending, readAccounting, type SinkCounts } from '../../src/store/accounts.ts'
import { peekFeed } from '../../src/store/feed-state.ts'
import { expectConservation } from '../support/ledger.ts'
import { until } from '../support/rehearsal.ts'
import { startRig, type Rig } from '../support/rig.ts'

interface Observed {
  app: App
  /** Lines of the log with this message, as `feed` or `feed reason`. */
  said: (message: string) => string[]
}

const standsBack = 'a newer configuration polls this feed; this replica does not'
const newWalk = 'a new scan begins; what lies behind it is read again'

function observed(rig: Rig, yaml: string): Observed {
  const lines: { msg: string; feed?: string; reason?: string }[] = []
  const write = (line: string): void => void lines.push(JSON.parse(line))
  return {
    app: rig.replica(yaml, createLogger({ destination: { write } })),
    said: (message) =>
      lines
        .filter(({ msg }) => msg === message)
        .map(({ feed, reason }) => [feed, reason].filter(Boolean).join(' ')),
  }
}

async function accountOf(app: App, sink: string): Promise<SinkCounts> {
  return (await readAccounting(app.ledgers[0]!)).sinks[sink]!
}

/** A replica of a newer configuration polls and is gone again, so that the older one has the job. */
async function takeOver(older: Observed, newer: Observed): Promise<void> {
  await newer.app.start()
  await until('the newer one has begun its walk', async () => {
    const state = await peekFeed(newer.app.ledgers[0]!, 'brand', 0)
    return state?.scan?.reason === 'configuration_changed'
  })
  await until('the older one stands back', () => older.said(standsBack).length > 0)
  await newer.app.stop()
  // once more where the account's server is found to filter by match time: that is another request
  expect(new Set(newer.said(newWalk))).toEqual(new Set(['brand configuration_changed']))
}

test('a rolling restart to another configuration and back loses nothing and repeats nothing', async () => {
  await using rig = await startRig()
  const { sandbox, arrived, hasAll } = rig
  const mend = sandbox.faults.add({ on: '/hooks/gone', effect: 'status', status: 503 })
  const before = rig.yaml({
    feeds: { brand: '', people: 'identifier_group: 1043' },
    sinks: { siem: '', gone: '' },
  })
  const after = rig.yaml({
    feeds: { brand: 'filters: {severity: high}', staff: 'identifier_group: 1043' },
    sinks: { siem: '', extra: '' },
  })
  const brand = (count: number, severity: string) => sandbox.addEvents(count, { severity })
  const people = (count: number) => sandbox.addEvents(count, { groupIds: [1043] })
  const [older, first] = [observed(rig, before), observed(rig, after)]
  const [newer, again] = [observed(rig, after), observed(rig, before)]

  const early = [...brand(10, 'high'), ...people(4)]
  await older.app.start()
  await until('the first events arrive', () => hasAll('siem', early))

  // what the newer one reads otherwise the older one leaves alone, be it the only one there
  await takeOver(older, first)
  await newer.app.start()
  const stoodBackAt = sandbox.requests.length
  const later = [...brand(6, 'critical'), ...people(3)]
  const mild = brand(2, 'low')
  await until('the later events arrive', () => hasAll('siem', later))
  await until('so they do at the new sink', () => hasAll('extra', later))
  expect(hasAll('siem', mild)).toBe(false)
  expect(older.said(standsBack)).toEqual(['brand'])
  expect([...older.said(newWalk), ...newer.said(newWalk)]).toEqual([])
  const asked = sandbox.requests
    .slice(stoodBackAt)
    .filter(({ path }) => path.endsWith('/1042/_search'))
  expect(asked.length).toBeGreaterThan(0)
  for (const { body } of asked) expect(body).toMatchObject({ filters: { severity: 'high' } })

  // the older one is gone: what its sink missed stays, and nobody sends it
  await older.app.stop()
  expect(sumPending(await accountOf(newer.app, 'gone'))).toBeGreaterThanOrEqual(early.length)
  await expectConservation(newer.app.ledgers[0]!)

  // and back again
  mend()
  await again.app.start()
  await until('the sink that is back gets all', () => hasAll('gone', early))
  await until('what was filtered arrives', () => hasAll('siem', mild))
  await newer.app.stop()
  expect([...newer.said(newWalk), ...again.said(newWalk)]).toEqual(['brand configuration_changed'])
  const last = [...brand(3, 'info'), ...people(2)]
  await until('all goes on', () => hasAll('siem', last))
  await until('all is settled but the sink that has no configuration', async () => {
    const { sinks } = await readAccounting(again.app.ledgers[0]!)
    return sumPending(sinks['siem']!) + sumPending(sinks['gone']!) === 0
  })

  const all = [...early, ...later, ...mild, ...last].map(({ uid }) => uid)
  expect(arrived().toSorted()).toEqual(all.toSorted())
  for (const sink of ['gone', 'extra']) {
    expect(arrived(sink)).toHaveLength(new Set(arrived(sink)).size)
  }
  expect((await accountOf(again.app, 'gone')).delivered).toBeGreaterThanOrEqual(early.length)
  await expectConservation(again.app.ledgers[0]!)
  expect(sandbox.violations()).toEqual({ rate: 0, changedScans: 0 })
})

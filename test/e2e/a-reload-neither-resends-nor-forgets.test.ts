import { expect, onTestFinished, test } from 'vitest'
import type { App } from '../../src/daemon/daemon.ts'
import type { ReloadOutcome } from '../../src/daemon/reload.ts'
import { expectConservation } from '../support/ledger.ts'
import { hurriedConfig, nothingPending, until } from '../support/rehearsal.ts'
import { startRig, type Parts, type Rig } from '../support/rig.ts'

function reload(app: App, yaml: string): Promise<ReloadOutcome> {
  return app.reload(async () => hurriedConfig(yaml))
}

/** How many connections the daemon has to Redis: those of an engine that was not stopped would stay. */
async function connections(app: App): Promise<number> {
  const info = await app.ledgers[0]!.redis.info('clients')
  return Number(/^connected_clients:(\d+)/m.exec(info)?.[1])
}

const both = { brand: '', people: 'identifier_group: 1043' }

/** Ten configurations, each other than the one before: feeds, sinks and routes come and go. */
function variants({ yaml }: Rig): string[] {
  const urgent = ", routes: [{name: urgent, matchers: ['severity>=high'], continue: true}]"
  return Array.from({ length: 10 }, (_, index): string => {
    const parts: Parts = {
      feeds: index % 3 === 2 ? { brand: '' } : both,
      sinks: { siem: '', [index % 2 === 0 ? 'extra' : 'other']: '' },
      route: index % 4 < 2 ? urgent : '',
    }
    return yaml(parts)
  })
}

test('ten reloads under way, and every event reaches each destination once', async () => {
  const warnings: string[] = []
  const warn = (warning: Error): void => void warnings.push(warning.message)
  process.on('warning', warn)
  onTestFinished(() => void process.off('warning', warn))
  await using rig = await startRig()
  const { sandbox, arrived, hasAll } = rig
  sandbox.faults.add({ on: '/hooks/*', effect: 'delay', ms: 100 })
  const { app } = await rig.start()
  const all: { uid: string }[] = []
  const add = (groupId: number): { uid: string }[] => {
    const events = sandbox.addEvents(6, { groupIds: [groupId], severity: 'high' })
    all.push(...events)
    return events
  }
  const first = add(1042)
  await until('the first arrive', () => hasAll('siem', first))
  const atFirst = await connections(app)
  for (const yaml of variants(rig)) {
    const early = add(1042)
    add(1043)
    const hasSome = (): boolean => early.some(({ uid }) => arrived().includes(uid))
    await until('the first of them arrive', hasSome)
    const reloaded = reload(app, yaml)
    add(1042)
    expect(await reloaded).toMatchObject({ status: 'changed' })
  }
  await reload(app, rig.yaml({ feeds: both, sinks: { siem: '', extra: '', other: '' } }))
  await until('all arrive', () => hasAll('siem', all))
  await until('all is settled', () => nothingPending(app))

  expect(arrived().toSorted()).toEqual(all.map(({ uid }) => uid).toSorted())
  const { sinks } = await expectConservation(app.ledgers[0]!)
  for (const sink of ['siem', 'extra', 'other']) {
    const uids = arrived(sink)
    expect(uids.length).toBeGreaterThan(0)
    expect(uids).toHaveLength(new Set(uids).size)
    expect(sinks[sink]!.delivered).toBe(uids.length)
  }
  expect(sandbox.violations()).toEqual({ rate: 0, changedScans: 0 })
  await reload(app, rig.yaml())
  await until('no connection is left over', async () => (await connections(app)) === atFirst)
  expect(warnings).toEqual([])
})

test('a stop while the file is read ends the reload, whatever the file says', async () => {
  await using rig = await startRig()
  const { app } = await rig.start()
  const outcome = await app.reload(async () => {
    await app.stop()
    return hurriedConfig(rig.yaml())
  })
  expect(outcome).toEqual({ status: 'stopped' })
})

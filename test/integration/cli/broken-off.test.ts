/** Walks that something ends early, and places of walks that are given to another. */
import { describe, expect, test, vi } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'

const tests = redisForTests()

const search = ['events', 'search', '--group=1042', '--all', '--output=json'] as const
const path = '/firework/v4/events/identifier_groups/*'

interface Page {
  items: { metadata: { uid: string } }[]
  next: string | null
}

async function aScene(): Promise<ServiceScene> {
  const scene = await aServiceScene(tests)
  scene.sandbox.addEvents(25, { groupIds: [1042] })
  return scene
}

function pageIn(out: string): Page {
  return JSON.parse(out) as Page
}

describe('a walk that is broken off', () => {
  test('by a failure is JSON all the same, with the place where it goes on', async () => {
    const { run, sandbox } = await aScene()
    const mend = sandbox.faults.add({ on: path, effect: 'status', status: 403, withCursor: true })
    const { code, out, err } = await run(...search)
    const { items, next } = pageIn(out)
    expect({ code, rows: items.length }).toEqual({ code: 1, rows: 10 })
    expect(err).toContain(`10 rows shown; go on with --from '${next}'\n`)
    mend()
    expect(pageIn((await run(...search, '--from', next!)).out).items).toHaveLength(15)
  })

  test('by Ctrl-C is JSON all the same, and no defect', async () => {
    const { runUntil, sandbox } = await aScene()
    sandbox.faults.add({ on: path, effect: 'hang', withCursor: true })
    const stop = new AbortController()
    const ended = runUntil(stop.signal, ...search)
    const isSecondAsked = () => sandbox.requests.filter((one) => one.path.endsWith('/_search'))[1]
    await vi.waitUntil(isSecondAsked, { timeout: 45_000 })
    stop.abort()
    const { code, out, err } = await ended
    const { items, next } = pageIn(out)
    expect({ code, rows: items.length }).toEqual({ code: 130, rows: 10 })
    expect(err).toBe(`10 rows shown; go on with --from '${next}'\n`)
  })

  test('before its first page has printed nothing, and says of no place', async () => {
    const { run, sandbox } = await aScene()
    sandbox.faults.add({ on: path, effect: 'status', status: 403 })
    const { out, err } = await run(...search)
    expect(out).toBe('')
    expect(err).not.toContain('--from')
  })
})

test('--from takes the cursor of an earlier answer, however much is shown, and in which form', async () => {
  const { run } = await aScene()
  const group = ['events', 'search', '--group=1042']
  const { next } = pageIn((await run(...group, '--limit=10', '--output=json')).out)
  const rest = await run(...group, '--all', '--from', next!, '--output=ndjson', '--reveal')
  expect(rest.out.trim().split('\n')).toHaveLength(15)
})

test.each([
  ['a question', ['api', 'assets.toggle', '--asset-id=77']],
  ['a secret', ['events', 'search', '--secret']],
])('Ctrl-C at %s ends it as an interruption, and nothing is asked', async (what, args) => {
  const { runAt, sent } = await aServiceScene(tests)
  const more = what === 'a question' ? ['--is-disabled=true'] : []
  const { code, out, err } = await runAt('\u0003', ...args, ...more)
  expect({ code, out }).toEqual({ code: 130, out: '' })
  expect(err).not.toMatch(/defect|AbortError| {4}at /)
  expect(sent()).toEqual([])
})

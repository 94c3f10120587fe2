/** Walks that something ends early, and places of walks that are given to another. */
import { expect, test, vi } from 'vitest'
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

test('a walk that Ctrl-C ends is JSON all the same, and no defect', async () => {
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

/** Pages that are too large to be read: what is in them arrives, or somebody is told that it did not. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listQuarantined, openFeed } from '../../../src/store/feed-state.ts'
import { type FeedRig, startFeedRig } from '../../support/feed-rig.ts'
import { aFeed } from '../../support/feeds.ts'
import { type HttpServer, startHttpServer } from '../../support/http-server.ts'
import { expectConservation, redisForTests } from '../../support/ledger.ts'

const tests = redisForTests()
const hourMs = 3_600_000
const feed = aFeed({ rescan: { everyMs: hourMs, backMs: 24 * hourMs } })

interface Search {
  size: number
  from?: string | undefined
}

/** Of a search for events, or of a credential feed. */
function searchIn(path: string, body: string): Search | undefined {
  if (path.endsWith('/_search')) return JSON.parse(body) as Search
  const { pathname, searchParams } = new URL(path, 'http://any')
  if (!pathname.endsWith('/feed/credentials')) return undefined
  return { size: Number(searchParams.get('size')), from: searchParams.get('from') ?? undefined }
}

const tooMany = JSON.stringify({ items: Array.from({ length: 55_000 }, () => ({})), next: 'more' })

let front: HttpServer
let rig: FeedRig
let searches: Search[]
/** Which searches are answered by far too many items. */
let isTooMuch: (search: Search) => boolean
/** What every item has besides. */
let grow: unknown
/** Whether the service takes a cursor only with the page size that it was given for. */
let bindsSize: boolean

beforeEach(async () => {
  front = await startHttpServer()
  searches = []
  isTooMuch = () => false
  grow = undefined
  bindsSize = false
  const sizeOfCursor = new Map<string, number>()
  rig = await startFeedRig({
    tests,
    sandbox: { endMode: 'empty' },
    before: (url) => {
      front.script(async ({ method, path, headers: { authorization = '' }, body }) => {
        const search = searchIn(path, body)
        if (search) searches.push(search)
        const size = sizeOfCursor.get(search?.from ?? '')
        if (bindsSize && size !== undefined && size !== search?.size) return { status: 422 }
        if (search && isTooMuch(search)) return { status: 200, body: tooMany }
        const headers = { authorization, 'content-type': 'application/json' }
        const answer = await fetch(url + path, { method, headers, ...(body && { body }) })
        const text = await answer.text()
        if (search) sizeOfCursor.set((JSON.parse(text) as { next: string }).next, search.size)
        const ballast = grow === undefined ? '' : `"ballast":${JSON.stringify(grow)},`
        return {
          status: answer.status,
          body: text.replaceAll('"highlights":', `${ballast}$&`),
        }
      })
      return front.url
    },
  })
})

afterEach(async () => {
  await rig.stop()
  await front.stop()
})

async function expectAllTakenIn(): Promise<void> {
  const taken = [...(await rig.records()).keys()].toSorted()
  const shown = rig.sandbox.events().map(({ uid }) => uid)
  expect(taken).toEqual(shown.toSorted())
  await expectConservation(rig.ledger)
}

test('it is read item by item where it stands, and then the pages have their usual size again', async () => {
  rig.sandbox.addEvents(45)
  let large = 0
  isTooMuch = ({ size }) => size > 1 && searches.length > 1 && (large += 1) === 1
  await rig.toEnd(feed)
  await expectAllTakenIn()
  const sizes = searches.map(({ size }) => size)
  expect(sizes.slice(0, 13)).toEqual([10, 10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 10])
  const [before, again] = searches.slice(1)
  expect(again?.from).toBe(before?.from)
  expect(await listQuarantined(rig.ledger)).toEqual([])
})

test('where not even one item of it can be read, the feed goes on from now and names the cursor', async () => {
  rig.sandbox.addEvents(25)
  let cursor: string | undefined
  isTooMuch = ({ from }) => from !== undefined && (cursor ??= from) === from
  await rig.toEnd(feed)
  const [entry, ...more] = await listQuarantined(rig.ledger)
  expect(more).toEqual([])
  expect(entry).toMatchObject({ feed: 'brand', uid: null })
  expect(entry?.problem).toContain('over 100 items where 1 were asked for')
  expect(JSON.parse(entry!.raw)).toMatchObject({ from: cursor, size: 1 })
  const { scan: walk, unreadable } = await openFeed(rig.ledger, 'brand', 0)
  expect(walk?.reason).toBe('page_too_large')
  expect(unreadable).toMatchObject({ shown: 1, unread: 1 })

  rig.sandbox.addEvents(2)
  await rig.toEnd(feed)
  expect((await rig.records()).size).toBe(12)
  expect(await rig.turn(feed, 'rescan')).toMatchObject({ status: 'failed', reason: 'contract' })
  const asked = searches.length
  expect(await rig.turn(feed, 'rescan')).toMatchObject({ status: 'failed' })
  expect(searches.slice(asked).map(({ from }) => from)).toEqual([cursor, cursor])
  cursor = 'another'
  expect(await rig.turn(feed, 'rescan')).toMatchObject({ status: 'not_due' })
  await expectAllTakenIn()
  expect(await listQuarantined(rig.ledger)).toHaveLength(1)
})

test('a single item of many megabytes is taken in like any other', async () => {
  rig.sandbox.addEvents(12)
  grow = { text: 'x'.repeat(3_000_000), list: Array.from({ length: 100_000 }, () => ({})) }
  await rig.toEnd(feed)
  await expectAllTakenIn()
  expect(searches.some(({ size }) => size === 1)).toBe(true)
  expect(await listQuarantined(rig.ledger)).toEqual([])
})

test('where a cursor holds for one page size alone, a rescan still comes to its end', async () => {
  const often = { ...feed, rescan: { everyMs: 1, backMs: 24 * hourMs } }
  rig.sandbox.addEvents(45)
  await rig.toEnd(often)
  bindsSize = true
  let pages = 0
  isTooMuch = ({ size, from }) => size > 1 && from !== undefined && (pages += 1) > 0
  searches = []
  await rig.toEnd(often, 'rescan')
  expect(searches.filter(({ size }) => size > 1)).toHaveLength(2)
  await expectAllTakenIn()
})

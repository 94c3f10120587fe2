/** Pages and items a second that a poller takes in, by the type of its feed. */
import type { PolledFeed } from '../../src/feeds/polled-feed.ts'
import type { Plan } from './plan.ts'
import { createReader, type Reader, type Reading } from './reader.ts'
import type { Rig } from './rig.ts'
import type { Row } from './row.ts'
import { groupId, identifier } from './sandbox-child.ts'
import type { Span } from './stopwatch.ts'

/** What the searches for events look for. */
const word = 'acme'

/** Each is named like its type; that of the legacy search begins after the older events. */
const feeds = `
  events: {type: events, identifier_group: ${groupId}, detail: [], start: 7d}
  event_search: {type: event_search, query: {type: keyword, keyword: ${word}}, detail: [], start: 7d}
  legacy_search: {type: legacy_search, query: ${word}, detail: [], start: 1d}
  credentials: {type: credentials, identifier: ${identifier.id}, severity: high}
  credential_search: {type: credential_search, query: {type: domain, fqdn: ${identifier.name}}, severity: high}
`
const olderMs = 2 * 86_400_000

/** `ceiling`: events a second of the bare fetch loop. */
export async function measurePolling(rig: Rig, plan: Plan, ceiling: number): Promise<Row[]> {
  await addItems(rig, plan)
  const reader = createReader(rig.config({ feeds }))
  try {
    const rows: Row[] = []
    for (const feed of reader.feeds) {
      const { items, pages, span } = await pollAll(rig, reader, feed)
      const expected = feed.type === 'legacy_search' ? plan.legacyItems : plan.polledItems
      if (items !== expected) throw new Error(`feed ${feed.name} found ${items} items`)
      const eventsPerSecond = items / span.seconds
      const pagesPerSecond = pages / span.seconds
      const polledOfCeiling = eventsPerSecond / ceiling
      const figures = { events: items, eventsPerSecond, pagesPerSecond, polledOfCeiling }
      rows.push({ key: `poll-${feed.name}`, label: feed.name, figures, span })
    }
    return rows
  } finally {
    await reader.close()
  }
}

/** Events that a group shows and searches find, and as many credentials. */
async function addItems({ sandbox }: Rig, { polledItems, legacyItems }: Plan): Promise<void> {
  const highlights = { content: [`something of <mark>${word}</mark>`] }
  const given = { groupIds: [groupId], highlights }
  const createdAtMs = Date.now() - olderMs
  await sandbox.addEvents(polledItems - legacyItems, { ...given, createdAtMs })
  await sandbox.addEvents(legacyItems, given)
  const leaked = { identifierIds: [identifier.id], domain: identifier.name }
  await sandbox.addCredentials(polledItems, leaked)
}

/** From the first page to the last, on an empty ledger; the first turn, which warms the code, is another. */
async function pollAll(
  rig: Rig,
  reader: Reader,
  feed: PolledFeed,
): Promise<Reading & { span: Span }> {
  reader.use(await rig.freshBook())
  await reader.turn(feed, 'feed')
  reader.use(await rig.freshBook())
  const stop = await rig.stopwatch.start()
  const reading = await reader.toEnd(feed, 'feed')
  return { ...reading, span: await stop() }
}

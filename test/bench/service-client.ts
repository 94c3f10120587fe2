/** How a script asks the service: a token, and pages of the usual size by their cursor. */
import { type Agent, request } from 'undici'
import type { WireSearchPage } from '../../src/upstream/resources/page.ts'

interface Asked {
  url: string
  headers?: Record<string, string>
  body: string
}

/** Throws unless the answer is a 2xx. */
export async function post(dispatcher: Agent, { url, headers, body }: Asked): Promise<string> {
  const sent = { 'content-type': 'application/json', ...headers }
  const answer = await request(url, { dispatcher, method: 'POST', headers: sent, body })
  const text = await answer.body.text()
  if (answer.statusCode < 300) return text
  throw new Error(`${answer.statusCode} from ${url}: ${text}`)
}

export interface FeedOptions {
  url: string
  apiKey: string
  groupId: number
}

type ReadPage = (cursor: string | null) => Promise<WireSearchPage>

/** Reads the page after a cursor; the oldest one after null. */
export async function openServiceFeed(
  dispatcher: Agent,
  { url, apiKey, groupId }: FeedOptions,
): Promise<ReadPage> {
  const asked = { url: `${url}/tokens/generate`, headers: { authorization: apiKey }, body: '{}' }
  const { token } = JSON.parse(await post(dispatcher, asked)) as { token: string }
  const headers = { authorization: `Bearer ${token}` }
  const filters = { estimated_created_at: { gte: new Date(0).toISOString() } }
  return async (from) => {
    const body = JSON.stringify({ size: 10, order: 'asc', filters, ...(from && { from }) })
    const path = `/firework/v4/events/identifier_groups/${groupId}/_search`
    return JSON.parse(await post(dispatcher, { url: url + path, headers, body })) as WireSearchPage
  }
}

/** From the oldest event to the newest. */
export async function* readPages(readPage: ReadPage): AsyncGenerator<WireSearchPage['items']> {
  let cursor: string | null = null
  do {
    const { items, next }: WireSearchPage = await readPage(cursor)
    yield items
    cursor = next ?? null
  } while (cursor !== null)
}

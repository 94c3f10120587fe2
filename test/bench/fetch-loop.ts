/** The ceiling: nothing but fetch and JSON.parse, page after page, as any client must. */
import { Agent, request } from 'undici'
import type { WireSearchPage } from '../../src/service/wire/page.ts'
import { groupId, type SandboxChild } from './sandbox-child.ts'

export interface FetchLoop {
  /** From the first page to the last, in order. */
  walk(): AsyncGenerator<WireSearchPage['items']>
  close(): Promise<void>
}

export async function createFetchLoop({ url, apiKey }: SandboxChild): Promise<FetchLoop> {
  const dispatcher = new Agent()

  async function post<Answer>(path: string, authorization: string, body: unknown): Promise<Answer> {
    const headers = { 'content-type': 'application/json', authorization }
    const asked = { dispatcher, method: 'POST', headers, body: JSON.stringify(body) } as const
    const answer = await request(`${url}${path}`, asked)
    if (answer.statusCode !== 200) throw new Error(`the sandbox answered ${answer.statusCode}`)
    return (await answer.body.json()) as Answer
  }

  const { token } = await post<{ token: string }>('/tokens/generate', apiKey, {})
  const search = `/firework/v4/events/identifier_groups/${groupId}/_search`
  const filters = { estimated_created_at: { gte: new Date(0).toISOString() } }
  return {
    async *walk() {
      let from: string | null = null
      do {
        const body = { size: 10, order: 'asc', filters, ...(from && { from }) }
        const page: WireSearchPage = await post(search, `Bearer ${token}`, body)
        yield page.items
        from = page.next ?? null
      } while (from !== null)
    },
    close: () => dispatcher.destroy(),
  }
}

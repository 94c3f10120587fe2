import type { Sandbox } from '../../../src/sandbox/sandbox.ts'
import { wireSearchPage, type WireSearchPage } from '../../../src/upstream/resources/page.ts'

export interface Answer {
  status: number
  headers: Headers
  text: string
  json: unknown
}

export async function ask(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: parsed(text) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function post(
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return ask(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

export async function tokenOf(
  sandbox: Sandbox,
  key = 'fw_sandbox',
  tenant?: number,
): Promise<string> {
  const url = `${sandbox.url}/tokens/generate`
  const headers = { authorization: key }
  const answer =
    tenant === undefined
      ? await ask(url, { method: 'POST', headers })
      : await post(url, { tenant_id: tenant }, headers)
  if (answer.status !== 200) throw new Error(`no token: ${answer.status} ${answer.text}`)
  return (answer.json as { token: string }).token
}

export function searchGroup(
  sandbox: Sandbox,
  token: string,
  body: unknown = {},
  group: number | string = 1042,
): Promise<Answer> {
  const url = `${sandbox.url}/firework/v4/events/identifier_groups/${group}/_search`
  return post(url, body, { authorization: `Bearer ${token}` })
}

export function detailOf(sandbox: Sandbox, token: string, uid: string): Promise<Answer> {
  return ask(`${sandbox.url}/firework/v4/events/?uid=${encodeURIComponent(uid)}`, {
    headers: { authorization: `Bearer ${token}` },
  })
}

/** Reads a group to its end, as the paging rules say; `between` runs after each page. */
export async function walkGroup(
  sandbox: Sandbox,
  token: string,
  body: Record<string, unknown>,
  between: (page: WireSearchPage) => void = () => {},
): Promise<{ uids: string[]; pages: WireSearchPage[]; cursor: string | undefined }> {
  const uids: string[] = []
  const pages: WireSearchPage[] = []
  let cursor: string | undefined
  for (;;) {
    const answer = await searchGroup(sandbox, token, { ...body, ...(cursor && { from: cursor }) })
    if (answer.status !== 200) throw new Error(`no page: ${answer.status} ${answer.text}`)
    const page = wireSearchPage.parse(answer.json)
    pages.push(page)
    uids.push(...page.items.map(uidOf))
    between(page)
    if (!page.next) return { uids, pages, cursor }
    cursor = page.next
  }
}

export function uidOf(item: unknown): string {
  return (item as { metadata: { uid: string } }).metadata.uid
}

import type { Sandbox } from '../../../src/sandbox/sandbox.ts'

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

export async function tokenOf(sandbox: Sandbox): Promise<string> {
  const headers = { authorization: sandbox.apiKeys[0]! }
  const answer = await ask(`${sandbox.url}/tokens/generate`, { method: 'POST', headers })
  if (answer.status !== 200) throw new Error(`no token: ${answer.status} ${answer.text}`)
  return (answer.json as { token: string }).token
}

import { expect, test } from 'vitest'
import { ask, post } from '../sandbox/client.ts'
import { startTocsin, tocsin } from './tocsin.ts'

const anywhere = ['--port=0', '--smtp-port=0', '--rate=0', '--backlog=0', '--output=json']

interface Places {
  url: string
  api_keys: string[]
  config: string
}

async function startSandboxWith(...args: string[]): Promise<Places> {
  const running = startTocsin('sandbox', ...anywhere, ...args)
  await running.says('\n')
  return JSON.parse(running.soFar()) as Places
}

async function tokenFrom({ url, api_keys: [key] }: Places): Promise<Record<string, string>> {
  const answer = await post(`${url}/tokens/generate`, '', { authorization: key ?? '' })
  return { authorization: `Bearer ${(answer.json as { token: string }).token}` }
}

test('the sandbox shows credentials in the order and with the limits that its options ask for', async () => {
  const places = await startSandboxWith(
    '--credential-backlog=50',
    '--credential-order=ascending',
    '--credential-size-limit=300',
    '--search-quota=5',
  )
  const headers = await tokenFrom(places)
  const feed = `${places.url}/firework/v3/identifiers/77/feed/credentials?size=50`
  const { items } = (await ask(feed, { headers })).json as { items: { id: number }[] }
  const ids = items.map(({ id }) => id)
  expect(ids.length).toBeGreaterThan(2)
  expect(ids).toEqual(ids.toSorted((a, b) => a - b))

  const search = `${places.url}/firework/v4/credentials/global/_search`
  const query = { type: 'domain', fqdn: 'example.com' }
  const answer = await post(search, { query, size: 300 }, headers)
  expect(answer.headers.get('x-sandbox-global-searches-remaining')).toBe('4')
})

test('its configuration has a feed for each identifier where there are credentials, else none', async () => {
  const { config } = await startSandboxWith('--credential-rate=1/s')
  for (const id of [77, 78, 406_285_232_303, 91, 92]) {
    expect(config).toContain(
      `  credentials-${id}:\n    type: credentials\n    identifier: ${id}\n    severity: high\n`,
    )
  }
  expect((await startSandboxWith()).config).not.toContain('credentials')
})

test.each([
  ['--credential-rate=often', 'Write 0, or a rate'],
  ['--credential-order=oldest', 'known: newest, ascending, shuffled'],
  ['--credential-size-limit=0', 'Write a whole number from 1'],
  ['--search-quota=-1', 'Write a whole number from 0'],
  ['--late-by=0s', 'Write a duration of 1s or more'],
])('%s is refused with what to write instead', async (arg, said) => {
  const { code, err } = await tocsin('sandbox', arg)
  expect(err).toContain(said)
  expect(code).toBe(2)
})

/** `events legacy-search`: every parameter of the deprecated search, by either method. */
import { expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene } from './service-scene.ts'

const tests = redisForTests()
const deprecated = 'this search is deprecated by the service'

test('shows what is found, how many that are, and that the search is deprecated', async () => {
  const { run, sandbox } = await aServiceScene(tests)
  sandbox.addEvents(12, { type: 'paste', severity: 'high' })
  const { code, out, err } = await run('events', 'legacy-search', '--type=paste', '--limit=3')
  expect(code).toBe(0)
  expect(out).toMatch(
    /^SEVERITY {2}CREATED \(UTC\) +TYPE +EVENT\nhigh {6}\d{4}-\d\d-\d\d .* {2}paste /,
  )
  expect(err).toContain(deprecated)
  expect(err).toContain('12 events found in all\n')
  expect(err).toMatch(/^there is more: --from '/m)
})

test('goes on where it ended, and gives machines every field without a secret', async () => {
  const { run, sandbox } = await aServiceScene(tests)
  const highlights = { content: ['password: Hush-Hush-4711'] }
  const data = { content: 'password: Hush-Hush-4711' }
  sandbox.addEvents(12, { type: 'paste', highlights, data })
  const ask = ['events', 'legacy-search', '--type=paste', '--since=1d', '--output=json']
  const uids: string[] = []
  let texts = ''
  for (let from: string[] = []; ;) {
    const { out } = await run(...ask, '--limit=5', ...from)
    texts += out
    const page = JSON.parse(out) as { items: { header: { uid: string } }[]; next: string | null }
    uids.push(...page.items.map(({ header }) => header.uid))
    if (page.next === null) break
    from = ['--from', page.next]
  }
  expect(new Set(uids)).toEqual(new Set(sandbox.events().map(({ uid }) => uid)))
  expect(uids).toHaveLength(12)
  expect(sandbox.violations().changedScans).toBe(0)
  expect(texts).not.toContain('Hush-Hush')
  expect((await run(...ask, '--reveal')).out).toContain('Hush-Hush')
  const csv = await run(...ask, '--output=csv')
  expect(csv.out).toContain('"header.uid","header.type","uid","metadata.type"')
  const [, type, uid] = /^"[^"]+","([^"]+)","([^"]*)"/m.exec(csv.out.split('\n')[1] ?? '') ?? []
  expect([type, uid]).toEqual(['paste', uids[0]]) // the column uid, wherever the item has it
  expect(csv.out).not.toContain('Hush-Hush')
})

test.each(['get', 'post'])('sends every parameter by %s', async (method) => {
  const { run, sandbox } = await aServiceScene(tests)
  const args = [
    '--query=bank',
    '--type=leaks,paste',
    '--experimental-type=x,y',
    '--risk=4,5',
    '--tag=vip,ceo',
    '--tags-operator=AND',
    '--since=2026-01-01',
    '--until=2026-02-01',
    '--action=exclude_ignored',
    '--actions=ignored,remediated',
    '--has-notes',
    '--has-modified-risk',
    '--no-global-policies',
    '--fields=metadata.uid,header.title',
    '--time-zone=Europe/Zurich',
    '--sort-by=indexed',
    '--order=asc',
    '--size=7',
  ]
  const { code } = await run('events', 'legacy-search', ...args, `--method=${method}`)
  expect(code).toBe(0)
  const [request] = sandbox.requests.filter(({ path }) => path.startsWith('/firework'))
  expect(request).toMatchObject({ method: method.toUpperCase(), path: '/firework/v2/search/' })
  expect(request?.query).toEqual({
    query: 'bank',
    types: ['leaks', 'paste'],
    experimental_types: ['x', 'y'],
    risks: ['4', '5'],
    tags: ['vip', 'ceo'],
    tags_query_operator: 'AND',
    time: '2026-01-01T00:00:00.000Z@2026-02-01T00:00:00.000Z',
    event_action: 'exclude_ignored',
    event_actions: ['ignored', 'remediated'],
    has_notes: 'true',
    has_modified_risk_score: 'true',
    use_global_policies: 'false',
    fields: ['metadata.uid', 'header.title'],
    time_zone: 'Europe/Zurich',
    sort_by: 'indexed',
    order: 'asc',
    size: '7',
  })
})

test.each([
  [['--type=illicit_network'], 'There is no "illicit_network"; did you mean "illicit_networks"?'],
  [['--risk=4,6'], 'Write numbers from 1 to 5'],
  [['--action=delete'], 'there are: default, ignored'],
  [['--sort-by=age'], 'there are: created, indexed'],
  [['--time-zone=Zurich'], 'Write a name of the zone database'],
  [['--until=1d'], '--until needs --since in this search'],
  [['--method=put'], 'there are: get, post'],
  [['--query='], 'It is empty; write a value.'],
])('%j is refused, and nothing is asked', async (args, said) => {
  const { run, sent } = await aServiceScene(tests)
  const { code, err } = await run('events', 'legacy-search', ...args)
  expect(code).toBe(2)
  expect(err).toContain(said)
  expect(sent()).toEqual([])
})

test('passes on what the service says of a bad query', async () => {
  const { run } = await aServiceScene(tests)
  const { code, err } = await run('events', 'legacy-search', '--query', 'a AND (')
  expect(code).toBe(1)
  expect(err).toMatch(/^the service refuses the request \(400\): /m)
})

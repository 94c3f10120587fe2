/** `policies`: made, read, listed, assigned to identifiers and deleted. */
import { expect, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'
import { aFile } from './tocsin.ts'

const tests = redisForTests()

const unknown = '00000000-0000-4000-8000-000000000000'

interface Policy {
  uuid: string
  name: string
  policy_type: string
  value: Record<string, unknown>
}

async function aPolicy({ run }: ServiceScene, name = 'breaches'): Promise<Policy> {
  const kind = ['--included-keywords', 'breach,leak']
  const { out } = await run('policies', 'create', '--name', name, ...kind, '--output=json')
  return JSON.parse(out) as Policy
}

test.each([
  [['--included-keywords', 'a, b'], 'INCLUDED_KEYWORDS', { keywords: ['a', 'b'] }],
  [['--excluded-keywords', 'a'], 'EXCLUDED_KEYWORDS', { keywords: ['a'] }],
  [['--query', 'example AND leak'], 'LUCENE_QUERY', { query: 'example AND leak' }],
  [['--cookies', 'sid'], 'ASTP_COOKIES', { cookie_names: ['sid'], match_subdomains: false }],
  [
    ['--cookies', 'sid,tid', '--match-subdomains'],
    'ASTP_COOKIES',
    { cookie_names: ['sid', 'tid'], match_subdomains: true },
  ],
])('policies create %j is a policy of type %s', async (kind, type, value) => {
  const { run, sent } = await aServiceScene(tests)
  const { code, out } = await run('policies', 'create', '--name=p', ...kind, '--output=json')
  expect(code).toBe(0)
  expect(JSON.parse(out)).toMatchObject({ name: 'p', policy_type: type, value })
  expect(sent().at(-1)).toMatchObject({ method: 'POST', body: { name: 'p', type, value } })
})

test('a policy is printed with its uuid first, in every form', async () => {
  const scene = await aServiceScene(tests)
  const { uuid } = await aPolicy(scene)
  const get = (form: string) => scene.run('policies', 'get', uuid, `--output=${form}`)
  expect((await get('text')).out.split('\n')).toEqual([
    'UUID                                  TYPE               NAME',
    `${uuid}  INCLUDED_KEYWORDS  breaches`,
    '    keywords: breach, leak',
    '',
  ])
  const json = JSON.parse((await get('json')).out) as unknown
  expect(json).toMatchObject({ uuid, value: { keywords: ['breach', 'leak'] } })
  expect(JSON.parse((await get('ndjson')).out)).toEqual(json)
  const [head, row] = (await get('csv')).out.trim().split('\n')
  expect(head).toContain('"uuid","name","policy_type","value","created_at","last_updated_at"')
  expect(row).toContain(`"${uuid}","breaches","INCLUDED_KEYWORDS"`)
})

test('a policy in a file is made as it stands there, one that was read before too', async () => {
  const scene = await aServiceScene(tests)
  const read = await aPolicy(scene)
  const written = { name: 'q', type: 'LUCENE_QUERY', value: { query: 'x' } }
  for (const policy of [written, read]) {
    const file = aFile('p.json', JSON.stringify(policy))
    expect((await scene.run('policies', 'create', '--file', file)).code).toBe(0)
  }
  const made = scene.sent().filter(({ method }) => method === 'POST')
  const { name, policy_type: type, value } = read
  expect(made.slice(1).map(({ body }) => body)).toEqual([written, { name, type, value }])
  const piped = await scene.runGiven(JSON.stringify(written), 'policies', 'create', '--file=-')
  expect(piped.out).toContain('    query: x')
})

const create = ['policies', 'create'] as const

test.each([
  ['no kind', [...create, '--name', 'p'], 'say which events match by one of --included-keywords'],
  [
    'two kinds',
    [...create, '--name', 'p', '--query', 'x', '--cookies', 'y'],
    'say which events match by one of',
  ],
  ['no name', [...create, '--query', 'x'], 'name: missing'],
  ['an empty name', [...create, '--query', 'x', '--name', ''], 'It is empty; write a value'],
  ['an empty query', [...create, '--name', 'p', '--query', ''], 'It is empty; write a value'],
  [
    'an empty keyword',
    [...create, '--name', 'p', '--included-keywords', 'a,,b'],
    'a comma between',
  ],
  [
    'subdomains of no cookie',
    [...create, '--name', 'p', '--query', 'x', '--match-subdomains'],
    '--match-subdomains goes with --cookies',
  ],
  [
    'more beside a file',
    [...create, '--name', 'p', '--file', 'p.json'],
    '--file: holds the whole policy; leave out what else it is',
  ],
  ['what is no uuid', ['policies', 'get', '..'], 'Write a uuid'],
  ['what is no uuid', ['policies', 'delete', '--yes', unknown, '77'], 'Write a uuid'],
  ['what is no id', ['policies', 'assign', unknown, '--to', '77,x'], 'number of at least 1'],
  ['no identifier', ['policies', 'assign', unknown], "'--to <ids>' not specified"],
  ['what is no id', ['policies', 'list', '--identifier', '0'], 'number of at least 1'],
])('%s is refused before anything is opened: %j', async (_name, args, said) => {
  const { run, sandbox } = await aServiceScene(tests)
  const { code, out, err } = await run(...args)
  expect(err.toLowerCase()).toContain(said.toLowerCase())
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(sandbox.requests).toEqual([])
})

test('a file with a mistake is named, with what is wrong in it', async () => {
  const { run, sandbox } = await aServiceScene(tests)
  const torn = aFile('p.json', '{"name": "p",}')
  expect((await run(...create, '--file', torn)).err).toBe(`${torn}:1:14: not JSON\n`)
  const wrong = { name: 'p', type: 'LUCENE_QERY', value: { query: 'x' } }
  const { code, err } = await run(...create, '--file', aFile('p.json', JSON.stringify(wrong)))
  expect(err).toContain('did you mean "LUCENE_QUERY"?')
  expect(code).toBe(2)
  expect(sandbox.requests).toEqual([])
})

test('what the service refuses names the policy', async () => {
  const { run } = await aServiceScene(tests)
  const made = await run(...create, '--name', 'p', '--query', 'AND (')
  expect(made.err).toMatch(
    /^policy "p": the service refuses the request \(422\): body\.value\.query/,
  )
  expect(await run('policies', 'get', unknown)).toEqual({
    code: 1,
    out: '',
    err: `policy ${unknown}: the service refuses the request (404): no such matching policy\n`,
  })
})

test('policies assign assigns to each identifier, and list shows it', async () => {
  const scene = await aServiceScene(tests)
  const { uuid } = await aPolicy(scene)
  const { code, out } = await scene.run('policies', 'assign', uuid, '--to', '77,78,77')
  expect(code).toBe(0)
  expect(out).toContain(`${uuid}  identifiers 77, 78`)
  expect(scene.sent().at(-1)?.body).toEqual({ identifier_ids: [77, 78], clean_past_events: false })

  const list = (form: string) =>
    scene.run('policies', 'list', '--identifier', '78', `--output=${form}`)
  expect((await list('text')).out).toMatch(
    new RegExp(
      `${uuid}  INCLUDED_KEYWORDS  breaches\n    keywords: breach, leak\n    assigned \\S+, past events kept\n`,
    ),
  )
  const { items } = JSON.parse((await list('json')).out) as { items: unknown[] }
  expect(items).toMatchObject([{ matching_policy: { uuid }, clean_past_events: false }])
  expect(JSON.parse((await list('ndjson')).out)).toEqual(items[0])
  expect((await list('csv')).out.split('\n')[1]).toContain(`"${uuid}","breaches"`)
})

test('assign --output json says what was asked for, since the service answers nothing', async () => {
  const scene = await aServiceScene(tests)
  const { uuid } = await aPolicy(scene)
  const { out } = await scene.run('policies', 'assign', uuid, '--to', '77', '--output=json')
  expect(JSON.parse(out)).toEqual({
    policy_uuid: uuid,
    identifier_ids: [77],
    clean_past_events: false,
  })
})

test('to clean past events is asked for first', async () => {
  const scene = await aServiceScene(tests)
  const { uuid } = await aPolicy(scene)
  const clean = ['policies', 'assign', uuid, '--to', '77', '--clean-past-events'] as const
  const assigned = () => scene.sandbox.monitoring.assignments.all()
  const alone = await scene.run(...clean)
  expect(alone.err).toContain('Events that identifier 77 matched')
  expect(alone).toMatchObject({ code: 2, out: '' })
  const declined = await scene.runAt('n', ...clean)
  expect(declined.err).toContain('nothing was changed')
  expect(declined.code).toBe(1)
  expect(assigned()).toEqual([])

  expect((await scene.runAt('y', ...clean)).out).toContain('past events are cleaned')
  expect((await scene.run(...clean, '--yes')).code).toBe(0)
  expect(assigned()).toMatchObject([{ identifierId: 77, cleanPastEvents: true }])
})

test('an identifier that is not there is named', async () => {
  const scene = await aServiceScene(tests)
  const { uuid } = await aPolicy(scene)
  const assigned = await scene.run('policies', 'assign', uuid, '--to', '77,99')
  expect(assigned).toMatchObject({
    code: 1,
    err: `policy ${uuid} for identifiers 77, 99: the service refuses the request (404): no such identifier 99\n`,
  })
  const listed = await scene.run('policies', 'list', '--identifier', '99')
  expect(listed.err).toMatch(/^identifier 99: the service refuses the request \(404\)/)
  expect(listed.code).toBe(1)
})

test('policies list without an identifier works where the server has it, else says what to do', async () => {
  const described = await aServiceScene(tests)
  expect(await described.run('policies', 'list')).toEqual({
    code: 1,
    out: '',
    err: 'this server lists no policies; name an identifier with --identifier\n',
  })
  const newer = await aServiceScene(tests, { undescribed: true, policyPaths: 'hyphen' })
  expect((await newer.run('policies', 'list')).out).toBe('nothing was found\n')
})

test('all policies are listed page after page, and a later call goes on where one ended', async () => {
  const scene = await aServiceScene(tests, { undescribed: true })
  for (let number = 1; number <= 30; number += 1) await aPolicy(scene, `p${number}`)
  const names = async (...args: string[]): Promise<[string[], string]> => {
    const { out, err } = await scene.run('policies', 'list', '--output=ndjson', ...args)
    const rows = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Policy)
    return [rows.map(({ name }) => name), err]
  }
  const [all] = await names('--all')
  expect(new Set(all)).toHaveProperty('size', 30)
  const [first, said] = await names('--limit=27')
  const [, place = ''] = /there is more: --from '(.+)'/.exec(said) ?? []
  const [rest] = await names('--from', place)
  expect([...first, ...rest]).toEqual(all)
  expect(first).toHaveLength(27)
})

test('a policy that is made meanwhile shifts no list', async () => {
  const scene = await aServiceScene(tests, { undescribed: true })
  for (let number = 1; number <= 6; number += 1) await aPolicy(scene, `p${number}`)
  const list = async (...args: string[]): Promise<{ items: Policy[]; next: string }> => {
    const { out } = await scene.run('policies', 'list', '--output=json', ...args)
    return JSON.parse(out) as { items: Policy[]; next: string }
  }
  const first = await list('--limit=3')
  await aPolicy(scene, 'new')
  const rest = await list('--from', first.next)
  const names = [...first.items, ...rest.items].map(({ name }) => name)
  expect(names.filter((name) => name !== 'new').toSorted()).toEqual([
    'p1',
    'p2',
    'p3',
    'p4',
    'p5',
    'p6',
  ])
})

test('policies delete asks first, and names each', async () => {
  const scene = await aServiceScene(tests)
  const { uuid } = await aPolicy(scene)
  const left = () => scene.sandbox.monitoring.policies.all()
  const alone = await scene.run('policies', 'delete', uuid)
  expect(alone.err).toBe(
    `1 matching policy will be deleted, with all assignments: ${uuid} (breaches). Nobody is there to ask; say --yes\n`,
  )
  expect(alone.code).toBe(2)
  expect((await scene.runAt('', 'policies', 'delete', uuid)).err).toContain('nothing was changed')
  expect(left()).toHaveLength(1)

  const { code, out } = await scene.runAt('yes', 'policies', 'delete', uuid)
  expect(code).toBe(0)
  expect(out).toContain(`${uuid}  breaches`)
  expect(left()).toEqual([])
})

test('policies delete deletes several at once, and nothing before all were found', async () => {
  const scene = await aServiceScene(tests)
  const uuids = [(await aPolicy(scene)).uuid, (await aPolicy(scene, 'second')).uuid]
  const missing = await scene.run('policies', 'delete', ...uuids, unknown, '--yes')
  expect(missing.err).toContain(`policy ${unknown}: the service refuses the request (404)`)
  expect(scene.sandbox.monitoring.policies.all()).toHaveLength(2)

  const { out } = await scene.run('policies', 'delete', ...uuids, '--yes', '--output=json')
  expect(JSON.parse(out)).toEqual({
    items: [
      { uuid: uuids[0], name: 'breaches', deleted: true },
      { uuid: uuids[1], name: 'second', deleted: true },
    ],
    next: null,
  })
  expect(scene.sandbox.monitoring.policies.all()).toEqual([])
})

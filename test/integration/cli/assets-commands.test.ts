/** `assets`: what is watched is created, replaced as a whole, enabled and disabled. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createSearchTypes } from '../../../src/upstream/resources/enumerations.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene } from './service-scene.ts'
import { aFile } from './tocsin.ts'

const tests = redisForTests()

const domain = ['assets', 'create', 'example.org', '--type', 'domain'] as const
const leaks = ['--search-types', 'leak,paste'] as const

test('assets create prints what was made, its id first', async () => {
  const { run, sandbox } = await aServiceScene(tests)
  const { code, out, err } = await run(...domain, ...leaks, '--risks', '4,5')
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out.split('\n')).toEqual([
    'ID              TYPE               STATE     NAME',
    '5001            domain             enabled   example.org',
    '    data: {"fqdn":"example.org"}',
    '    search types: leak, paste',
    '    risks: 4, 5',
    '',
  ])
  expect(sandbox.monitoring.assets.get(5001)).toMatchObject({ groupId: 1042, risks: [4, 5] })
})

test('assets create --output json is the asset as the service answered it', async () => {
  const { run } = await aServiceScene(tests)
  const { out } = await run(...domain, ...leaks, '--output=json')
  const asset = JSON.parse(out) as Record<string, unknown>
  expect(asset).toMatchObject({ id: 5001, type: 'domain', is_disabled: false, source: 'USER' })
  expect(Object.keys(asset)).toHaveLength(16)
})

test('assets create has a line of JSON, and CSV with every field', async () => {
  const { run } = await aServiceScene(tests)
  const lines = await run(...domain, ...leaks, '--output=ndjson')
  expect(JSON.parse(lines.out)).toMatchObject({ id: 5001, data: { fqdn: 'example.org' } })
  const csv = await run(...domain, ...leaks, '--output=csv')
  const [head, row] = csv.out.trim().split('\n')
  expect(head?.split(',')).toHaveLength(16)
  expect(row).toContain('"5002","example.org","domain","[""leak"",""paste""]"')
})

test.each([
  ['example.org', 'domain', { fqdn: 'example.org' }],
  ['Example Bank', 'keyword', { keyword: 'Example Bank' }],
  ['ann@example.org', 'email', { email: 'ann@example.org' }],
  ['ann', 'username', { username: 'ann' }],
  ['example AND leak', 'search_query', { search_query: 'example AND leak' }],
  ['424242', 'bin', { bin: '424242' }],
  ['192.0.2.7', 'ip', { ip: '192.0.2.7' }],
  ['contoso', 'azure_tenant', { tenant_id: 'contoso' }],
  ['example/site', 'github_repository', { repo_owner: 'example', repo_name: 'site' }],
])('the value %s of type %s is its data and its name', async (value, type, data) => {
  const { run, sent } = await aServiceScene(tests)
  expect((await run('assets', 'create', value, '--type', type, ...leaks)).code).toBe(0)
  expect(sent()).toMatchObject([{ method: 'POST', body: { name: value, type, data } }])
})

test('everything that an asset takes is sent, and nothing that was not given', async () => {
  const { run, sent } = await aServiceScene(tests)
  const further = ['--experimental-search-types', 'x,y', '--group', '1043', '--name', 'Ours']
  await run(...domain, ...leaks, ...further, '--risks', '5')
  await run(...domain, ...leaks)
  expect(sent().map(({ body }) => body)).toEqual([
    {
      name: 'Ours',
      type: 'domain',
      search_types: ['leak', 'paste'],
      data: { fqdn: 'example.org' },
      experimental_search_types: ['x', 'y'],
      risks: [5],
      assets_group_id: 1043,
    },
    {
      name: 'example.org',
      type: 'domain',
      search_types: ['leak', 'paste'],
      data: { fqdn: 'example.org' },
    },
  ])
})

test('data of several fields is given field by field, or in a file, or on standard input', async () => {
  const { run, runGiven, sent } = await aServiceScene(tests)
  const ada = ['assets', 'create', '--type', 'name', '--name', 'Ada', ...leaks]
  const fields = ['--data', 'first_name=Ada', '--data', 'last_name=a=b', '--data', 'is_strict=true']
  const data = { first_name: 'Ada', last_name: 'a=b', is_strict: true }
  await run(...ada, ...fields)
  await run(...ada, '--data-file', aFile('ada.json', JSON.stringify(data)))
  await runGiven(JSON.stringify(data), ...ada, '--data-file', '-')
  await run(...ada, ...fields.slice(0, 4))
  const loose = { ...data, is_strict: false } // the service requires it
  expect(sent().map(({ body }) => (body as { data: unknown }).data)).toEqual([
    data,
    data,
    data,
    loose,
  ])
})

test('--search-types all is every type that may be given on creation', async () => {
  const { run, sent } = await aServiceScene(tests)
  await run(...domain, '--search-types', 'all')
  expect(sent()).toMatchObject([{ body: { search_types: [...createSearchTypes] } }])
})

const secretAsset = ['assets', 'create', '--type', 'secret', '--name', 'a key', ...leaks] as const

test('a secret is asked for, on a terminal or on standard input, and shown only with --reveal', async () => {
  const { runAt, runGiven, sent } = await aServiceScene(tests)
  const typed = await runAt('hush-hush', ...secretAsset)
  expect(typed).toMatchObject({ code: 0, err: 'secret to watch for: \n' })
  for (const form of ['text', 'json', 'ndjson', 'csv']) {
    const { code, out, err } = await runGiven('hush-hush\n', ...secretAsset, `--output=${form}`)
    expect(code).toBe(0)
    expect(out + err).toContain('h••••h')
    expect(out + err).not.toContain('hush-hush')
  }
  const marked = '\uFEFFhush-hush\r\n' // as PowerShell pipes it
  const shown = await runGiven(marked, ...secretAsset, '--reveal', '--output=json')
  expect(JSON.parse(shown.out)).toMatchObject({ data: { secret: 'hush-hush' } })
  for (const { body } of sent()) expect(body).toMatchObject({ data: { secret: 'hush-hush' } })
})

test.each([
  ['as the value', ['hush-hush', '--type', 'secret']],
  ['as a field', ['--type', 'secret', '--data', 'secret=hush-hush']],
  ['as a field of another type', ['--type', 'identity', '--data', 'password=hush-hush']],
])('a secret on the command line is refused: %s', async (_where, args) => {
  const { run, sent } = await aServiceScene(tests)
  const { code, out, err } = await run('assets', 'create', '--name', 'x', ...args, ...leaks)
  expect(err).toContain('a secret does not belong on the command line')
  expect(out + err).not.toContain('hush-hush')
  expect(code).toBe(2)
  expect(sent()).toEqual([])
})

test.each([
  ['an empty name', [...domain, ...leaks, '--name', ''], "'--name <text>' argument '' is invalid"],
  ['no name', ['assets', 'create', '--type', 'ip', '--data', 'ip=::1', ...leaks], 'name: missing'],
  [
    'a wrong type',
    ['assets', 'create', 'a.example', '--type', 'domian', ...leaks],
    'it: type: not known to the service; did you mean "domain"?\n',
  ],
  ['a wrong search type', [...domain, '--search-types', 'leak,pste'], 'did you mean "paste"?'],
  ['no search types', [...domain], "required option '--search-types <types>' not specified"],
  ['an empty search type', [...domain, '--search-types', 'leak,'], 'with a comma between each'],
  ['a risk of 6', [...domain, ...leaks, '--risks', '3,6'], 'risks.1: too large; write 5 or less'],
  ['a group that is no id', [...domain, ...leaks, '--group', '0'], 'a whole number of at least 1'],
  ['no data', ['assets', 'create', '--type', 'ip', '--name', 'x', ...leaks], 'data: missing'],
  ['two kinds of data', [...domain, ...leaks, '--data', 'fqdn=b.example'], 'and only one'],
  ['half a field', [...domain.toSpliced(2, 1), ...leaks, '--data', 'fqdn'], 'write key=value'],
  [
    'one value of several fields',
    ['assets', 'create', 'Ada', '--type', 'name', ...leaks],
    '--type name: give --data first_name=…',
  ],
])('assets create refuses %s before anything is sent', async (_name, args, said) => {
  const { run, sent } = await aServiceScene(tests)
  const { code, out, err } = await run(...args)
  expect(err).toContain(said)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(sent()).toEqual([])
})

test('what the service refuses names the asset and the group', async () => {
  const { run } = await aServiceScene(tests)
  const unknown = await run(...domain, ...leaks, '--group', '99')
  expect(unknown).toMatchObject({
    code: 1,
    err: 'asset "example.org" of assets group 99: the service refuses the request (404): no such assets group\n',
  })
  const odd = await run('assets', 'create', 'no host', '--type', 'domain', ...leaks)
  expect(odd.err).toContain('asset "no host": the service refuses the request (400): data does not')
})

async function anAsset(
  run: (...args: string[]) => Promise<{ out: string }>,
): Promise<Record<string, unknown>> {
  const { out } = await run(...domain, ...leaks, '--output=json')
  return JSON.parse(out) as Record<string, unknown>
}

test('assets replace sends the whole asset, fields that nobody knows included', async () => {
  const { run, runGiven, sent } = await aServiceScene(tests)
  const asset = { ...(await anAsset(run)), name: 'renamed', further: { kept: true } }
  const { code, out } = await run(
    'assets',
    'replace',
    '5001',
    '--file',
    aFile('a.json', JSON.stringify(asset)),
  )
  expect(code).toBe(0)
  expect(out).toContain('5001            domain             enabled   renamed')
  expect(sent().at(-1)).toEqual({ method: 'PUT', path: '/firework/v2/assets/5001', body: asset })
  const again = await runGiven(
    JSON.stringify(asset),
    'assets',
    'replace',
    '5001',
    '--file=-',
    '--output=json',
  )
  expect(JSON.parse(again.out)).toMatchObject({
    id: 5001,
    name: 'renamed',
    further: { kept: true },
  })
})

test('assets replace names what the service has no place for', async () => {
  const { run } = await aServiceScene(tests, { undescribed: true })
  const asset = { ...(await anAsset(run)), further: 1, is_disabled: true }
  const file = aFile('a.json', JSON.stringify(asset))
  const { code, out, err } = await run('assets', 'replace', '5001', '--file', file)
  expect({ code, err }).toEqual({ code: 0, err: 'the service has no place for: further\n' })
  expect(out).toContain('disabled')
})

test('assets replace refuses a file with which something would be lost', async () => {
  const { run, runGiven, sent } = await aServiceScene(tests)
  const masked = await runGiven('hush-hush', ...secretAsset, '--output=json')
  const asset = JSON.parse(masked.out) as Record<string, unknown>
  const cases = [
    [asset, ': holds a masked secret; write the secret itself, as --reveal shows it'],
    [{ ...asset, id: 77 }, ': holds another asset than 5001; see its "id"'],
    [
      { ...asset, data: { secret: 'x' }, search_types: ['ads'] },
      '"ads" may be given when an asset is created, not when it is replaced',
    ],
    [{ ...asset, data: { secret: 'x' }, type: 'secrt' }, 'did you mean "secret"?'],
    [{ ...asset, data: { secret: 'x' }, name: '' }, 'name: empty; write at least 1 character'],
    [{ name: 'only' }, 'type: missing; write one of'],
    [[], 'not a JSON object'],
  ] as const
  for (const [written, said] of cases) {
    const file = aFile('a.json', JSON.stringify(written))
    const { code, err } = await run('assets', 'replace', '5001', '--file', file)
    expect(err).toContain(said)
    expect(code).toBe(2)
  }
  expect(sent().filter(({ method }) => method === 'PUT')).toEqual([])
  expect((await run('assets', 'replace', '--help')).out).toMatch(/leaves\s+out is gone/)
})

test('a file that is no JSON is named with the place, and not quoted', async () => {
  const { run, runGiven, sent } = await aServiceScene(tests)
  const file = aFile('a.json', '{\n  "data": {"secret": hush-hush}\n}')
  for (const args of [
    ['assets', 'replace', '77', '--file', file],
    ['assets', 'create', '--type', 'ip', '--name', 'x', ...leaks, '--data-file', file],
  ]) {
    expect(await run(...args)).toEqual({ code: 2, out: '', err: `${file}:2:22: not JSON\n` })
  }
  const piped = await runGiven('', 'assets', 'replace', '77', '--file', '-')
  expect(piped.err).toBe('standard input:1:1: not JSON\n')
  const missing = await run('assets', 'replace', '77', '--file', `${file}.gone`)
  expect(missing).toMatchObject({ code: 2, err: `${file}.gone: there is no such file\n` })
  expect(sent()).toEqual([])
  expect(readFileSync(file, 'utf8')).toContain('hush-hush')
})

test('no more is read of a file or a pipe than a request is long', async () => {
  const { run, runGiven, sent } = await aServiceScene(tests)
  const longer = 'longer than 16384 KiB; name a file that holds this and nothing else\n'
  const device = await run('assets', 'replace', '77', '--file', '/dev/zero')
  expect(device).toEqual({ code: 2, out: '', err: `/dev/zero: ${longer}` })
  const given = `{"name": "${'x'.repeat(16 * 1024 * 1024)}"}`
  const piped = await runGiven(given, 'assets', 'replace', '77', '--file', '-')
  expect(piped).toEqual({ code: 2, out: '', err: `standard input: ${longer}` })
  expect(sent()).toEqual([])
})

test('assets disable and enable change each asset, and print it', async () => {
  const { run, sandbox } = await aServiceScene(tests)
  const disabled = await run('assets', 'disable', '77', '78', '77')
  expect(disabled.code).toBe(0)
  expect(disabled.out.match(/disabled/g)).toHaveLength(2)
  expect(sandbox.monitoring.assets.get(78)).toMatchObject({ isDisabled: true })
  const enabled = await run('assets', 'enable', '78', '--output=json')
  expect(JSON.parse(enabled.out)).toMatchObject({
    items: [{ id: 78, is_disabled: false }],
    next: null,
  })
  expect(sandbox.monitoring.assets.get(77)).toMatchObject({ isDisabled: true })
})

test('the first refusal ends it and says what was done and what was not', async () => {
  const { run, sandbox } = await aServiceScene(tests)
  const { code, out, err } = await run('assets', 'disable', '77', '99', '78', '--output=json')
  expect(err).toBe(
    'disabled: 77; stopped at: 99; not tried: 78\nasset 99: the service refuses the request (404): no such asset\n',
  )
  expect(code).toBe(1)
  expect(JSON.parse(out)).toMatchObject({ items: [{ id: 77, is_disabled: true }] })
  expect(sandbox.monitoring.assets.get(78)).toMatchObject({ isDisabled: false })
})

test('an interruption says what was done and what was not', async () => {
  const { runUntil, sandbox, sent } = await aServiceScene(tests)
  sandbox.faults.add({ on: '/firework/v2/assets/78/toggle', effect: 'hang' })
  const interrupt = new AbortController()
  const ended = runUntil(interrupt.signal, 'assets', 'disable', '77', '78', '91')
  await expect.poll(sent).toHaveLength(2)
  interrupt.abort()
  expect(await ended).toMatchObject({
    code: 130,
    err: 'disabled: 77; stopped at: 78; not tried: 91\n',
  })
})

test('an answer that was lost may have changed the asset all the same, and it says so', async () => {
  const { run, sandbox } = await aServiceScene(tests)
  sandbox.faults.add({ on: '/firework/v2/assets/78/toggle', effect: 'lose-answer' })
  const { code, err } = await run('assets', 'disable', '77', '78')
  expect(err).toContain('disabled: 77; stopped at: 78\n')
  expect(err).toContain('it may have been done all the same: look before you repeat it')
  expect(code).toBe(1)
  expect(sandbox.monitoring.assets.get(78)).toMatchObject({ isDisabled: true })
})

test.each([
  ['enable', 'x'],
  ['disable', '-1'],
  ['enable', '1.5'],
  ['disable', '0'],
  ['enable', '99999999999999999'],
])('assets %s refuses %s, which is no id', async (verb, id) => {
  const { run, sandbox } = await aServiceScene(tests)
  const { code, out } = await run('assets', verb, '77', id)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(sandbox.requests).toEqual([])
})

test('an asset of another tenant is forbidden, and named', async () => {
  const groups = [
    { id: 5, name: 'Others', tenantId: 43, identifiers: [{ id: 500, name: 'x.example' }] },
  ]
  const { run } = await aServiceScene(tests, { groups })
  const { code, err } = await run('assets', 'disable', '500')
  expect(err).toMatch(/^asset 500: access is forbidden \(403\).*the asset is another tenant's/)
  expect(code).toBe(1)
})

test('assets list shows what identifiers list shows, by the same filters', async () => {
  const { run, sent } = await aServiceScene(tests)
  const filters = [
    'list',
    '--type=keyword',
    '--enabled',
    '--group=1042',
    '--order-by=name',
  ] as const
  const listed = await run('assets', ...filters)
  expect(listed).toEqual(await run('identifiers', ...filters))
  expect(listed.out).toMatch(/^78 +keyword +enabled +1042 +0 +Example Bank$/m)
  const [first, second] = sent()
  expect(first).toEqual(second)
  const foreign = await run('assets', 'list', '--from', '0123456789.0.x')
  expect(foreign.err).toContain('--from belongs to another request')
  expect(foreign.code).toBe(2)
})

test('assets get shows one asset as it was created, in every form', async () => {
  const { run } = await aServiceScene(tests)
  const created = await run(...domain, ...leaks)
  expect(await run('assets', 'get', '5001')).toEqual(created)
  const json = JSON.parse((await run('assets', 'get', '5001', '--output=json')).out) as object
  expect(json).toMatchObject({ id: 5001, data: { fqdn: 'example.org' } })
  const line = JSON.parse((await run('assets', 'get', '5001', '--output=ndjson')).out) as object
  expect(Object.keys(line)).toEqual(Object.keys(json))
})

test('assets get masks the secret that is watched for, unless it is to be revealed', async () => {
  const { run, runGiven } = await aServiceScene(tests)
  await runGiven('hush-hush', ...secretAsset)
  expect((await run('assets', 'get', '5001')).out).not.toContain('hush-hush')
  expect((await run('assets', 'get', '5001', '--reveal')).out).toContain('hush-hush')
})

test('assets delete asks first, and names each', async () => {
  const { run, runAt, sandbox } = await aServiceScene(tests)
  const left = (): number[] => sandbox.monitoring.assets.all().map(({ id }) => id)
  const alone = await run('assets', 'delete', '77', '78')
  expect(alone).toEqual({
    code: 2,
    out: '',
    err: '2 assets will be deleted: 77 (example.com), 78 (Example Bank); the service may delete what it found for them, too. Nobody is there to ask; say --yes\n',
  })
  expect((await runAt('n', 'assets', 'delete', '77')).err).toContain('nothing was changed')
  expect(left()).toContain(77)

  const { code, out } = await runAt('y', 'assets', 'delete', '77', '78', '77', '--output=json')
  expect(code).toBe(0)
  expect(JSON.parse(out)).toEqual({
    items: [
      { id: 77, name: 'example.com', deleted: true },
      { id: 78, name: 'Example Bank', deleted: true },
    ],
    next: null,
  })
  expect(left()).not.toContain(77)
  expect(left()).not.toContain(78)
})

test('assets delete deletes nothing before all were found', async () => {
  const { run, sandbox, sent } = await aServiceScene(tests)
  const { code, err } = await run('assets', 'delete', '77', '99', '--yes')
  expect(err).toBe('asset 99: the service refuses the request (404): no such asset\n')
  expect(code).toBe(1)
  expect(sandbox.monitoring.assets.get(77)).toBeDefined()
  expect(sent().map(({ method }) => method)).toEqual(['GET', 'GET'])
})

test('a deletion whose answer was lost may have been done all the same, and it says so', async () => {
  const { run, sandbox } = await aServiceScene(tests)
  sandbox.faults.add({ on: '/firework/v2/assets/78', method: 'DELETE', effect: 'lose-answer' })
  const { code, err } = await run('assets', 'delete', '77', '78', '91', '--yes')
  expect(err).toContain('deleted: 77; stopped at: 78; not tried: 91\n')
  expect(err).toContain('it may have been done all the same: look before you repeat it')
  expect(code).toBe(1)
  expect(sandbox.monitoring.assets.get(91)).toBeDefined()
})

test.each([
  [404, ['get', '77']],
  [405, ['delete', '77', '--yes']],
])(
  'a server that shows no asset (%d) is told from an asset that is not there',
  async (status, args) => {
    const { run, sandbox } = await aServiceScene(tests)
    const plain = { status, body: 'text', message: 'Not Found' } as const
    sandbox.faults.add({ on: '/firework/v2/assets/77', effect: 'status', ...plain })
    expect(await run('assets', ...args)).toEqual({
      code: 1,
      out: '',
      err: 'this server shows no single asset; "tocsin assets list" shows all, and the web application deletes them\n',
    })
  },
)

test.each([
  [['get'], "missing required argument 'id'"],
  [['get', 'x'], 'a whole number of at least 1'],
  [['delete'], "missing required argument 'ids'"],
  [['delete', '77', '0', '--yes'], 'a whole number of at least 1'],
  [['delete', '77', '--reveal'], 'tocsin assets delete has no option --reveal'],
  [['list', '--type', 'domian'], 'domain'],
  [['list', '--enabled', '--disabled'], 'cannot be used with'],
])('assets %j is refused before anything is opened', async (args, said) => {
  const { run, sandbox } = await aServiceScene(tests)
  const { code, out, err } = await run('assets', ...args)
  expect(err.toLowerCase()).toContain(said)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(sandbox.requests).toEqual([])
})

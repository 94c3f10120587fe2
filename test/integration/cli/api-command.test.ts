/** `tocsin api`: the commands that are made from the table of operations. */
import { describe, expect, test } from 'vitest'
import { parameterNames } from '../../../src/upstream/resources/operation.ts'
import { operations } from '../../../src/upstream/resources/operations.ts'
import { redisForTests } from '../../support/ledger.ts'
import { requestsOf } from '../../support/operation-requests.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()

const uid = 'paste/site/1'
const ignoring = { targets: [{ uid }], action: { type: 'ignore' } }
const ignore = ['api', 'events.act', '--body', JSON.stringify(ignoring), '--by=ann']

async function aScene(): Promise<ServiceScene> {
  const scene = await aServiceScene(tests)
  scene.sandbox.addEvent({ uid, groupIds: [1042] })
  return scene
}

test('an operation that there is not is named with the nearest, and one with a command of its own with that', async () => {
  expect((await tocsin('api', 'events.serch')).err).toContain('did you mean "events.search"?')
  const { code, err } = await tocsin('api', 'reports.download')
  expect({ code, err }).toEqual({
    code: 2,
    err: expect.stringContaining('tocsin reports download'),
  })
})

test.each(operations.filter(({ onlyBy }) => !onlyBy).map(({ name, path }) => [name, path]))(
  'api %s --help has an option for each parameter of its path, and its request',
  async (name, path) => {
    const { code, out } = await tocsin('api', name, '--help')
    expect(code).toBe(0)
    expect(out).toContain(path)
    for (const [, parameter = ''] of path.matchAll(/\{(\w+)\}/g)) {
      expect(out).toMatch(new RegExp(`--${parameter.replaceAll('_', '-')} <\\w+> +required`))
    }
  },
)

const requests = requestsOf({
  uid,
  policy: '7e5f1c70-0000-4000-8000-000000000001',
  reportRequest: '1',
  report: 1,
  credentialHash: 'x',
  asset: 77,
  doomed: 78,
})

/** Every operation that changes something, with what its request says. */
const writes = operations
  .filter(({ changes }) => changes)
  .map((row) => {
    const fields = { ...requests[row.name]![0] }
    const options = parameterNames(row).map((name) => {
      const option = `--${name.replaceAll('_', '-')}=${String(fields[name])}`
      delete fields[name]
      return option
    })
    const body = row.body ? ['--body', JSON.stringify(fields)] : []
    return [row.name, [...options, ...body]] as const
  })

describe('a request', () => {
  test('takes fields that may be null as options', async () => {
    const scene = await aScene()
    const options = ['--name=x', '--group-id=1042', '--is-disabled=true', '--categories=leak,paste']
    const data = { type: 'domain', fqdn: 'a.example' }
    const create = ['api', 'identifiers.create', '--yes', ...options]
    await scene.run(...create, '--body', JSON.stringify({ data }))
    const categories = ['leak', 'paste']
    expect(scene.sent()[0]?.body).toMatchObject({
      name: 'x',
      group_id: 1042,
      is_disabled: true,
      categories,
      data,
    })
  })

  test('is put together from options, and JSON in a file, on standard input or as it is', async () => {
    const scene = await aScene()
    const value = { keywords: ['acme'] }
    const body = JSON.stringify({ value })
    const create = ['api', 'policies.create', '--name=x', '--type=INCLUDED_KEYWORDS', '--yes']
    expect((await scene.run(...create, '--body', body)).code).toBe(0)
    expect((await scene.run(...create, '--body', aFile('body.json', body))).code).toBe(0)
    expect((await scene.runGiven(body, ...create, '--body=-')).code).toBe(0)
    const sent = { name: 'x', type: 'INCLUDED_KEYWORDS', value }
    expect(scene.sent().map(({ body: given }) => given)).toEqual([sent, sent, sent])
  })

  test.each([
    [['identifiers.get'], /identifier_id: missing/],
    [['identifiers.get', '--identifier-id=0'], /identifier_id: Too small/],
    [['identifiers.list', '--types=domian'], /did you mean "domain"\?/],
    [['events.note', '--uid=x', '--severity=hihg'], /did you mean "high"\?|severity/],
    [['policies.get', '--policy-uuid=7'], /policy_uuid/],
    [['policies.create', '--name=x', '--type=LUCENE_QUERY'], /value: missing/],
    [['events.search-tenant', '--body={"filtres":{}}'], /Unrecognized key: "filtres"/],
    [['events.search-tenant', '--size=11'], /unknown option '--size=11'/],
    [['events.search-tenant', '--body={"size":5}'], /leave out from and size/],
    [['events.search-tenant', '--body={"from":"x"}'], /leave out from and size/],
    [['events.act', '--body={"targets":'], /--body: not JSON/],
    [['assets.replace', '--asset-id=7', '--body={"name":"••••"}'], /a masked secret/],
    [
      ['assets.replace', '--asset-id=7', '--body={"name":"[withheld: may hold a secret]"}'],
      /a masked secret/,
    ],
    [['credentials.search', '--body={"query":{"type":"secret","secret":"x"}}'], /others can read/],
    [['cookies.search', '--body={"domain":"a.example","values":["x"]}'], /others can read/],
  ])('that is wrong is refused with the field, and nothing is sent: %j', async (args, told) => {
    const { run, sandbox } = await aScene()
    const { code, out, err } = await run('api', ...args)
    expect({ code, out, err }).toEqual({ code: 2, out: '', err: expect.stringMatching(told) })
    expect(sandbox.requests).toEqual([])
  })
})

describe('an answer', () => {
  test('of pages goes on where an earlier one ended, in every form', async () => {
    const { run, sandbox } = await aScene()
    sandbox.addEvents(24, { groupIds: [1042] })
    const search = ['api', 'events.search-group', '--identifier-group-id=1042']
    const uidsIn = ({ out }: { out: string }): string[] =>
      out
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { metadata: { uid: string } }).metadata.uid)
    const begun = await run(...search, '--limit=12', '--output=ndjson')
    const place = /--from '([^']+)'/.exec(begun.err)?.[1] ?? ''
    const rest = await run(...search, '--all', '--output=ndjson', '--from', place)
    const all = await run(...search, '--all', '--output=ndjson')
    expect([...uidsIn(begun), ...uidsIn(rest)]).toEqual(uidsIn(all))
    expect(uidsIn(all)).toHaveLength(25)
    expect((await run(...search, '--limit=1')).out).toMatch(/^UID +TYPE +SEVERITY/)
  })

  test.each([
    ['credentials.feed', ['--identifier-id=77']],
    ['credentials.tenant-feed', []],
    ['cookies.search', ['--domain=a.example']],
    ['events.expand', ['--uid=stealer_log/x/1', '--field=credentials']],
    ['events.get', ['--uid=stealer_log/x/1']],
    ['events.activity', ['--uid=stealer_log/x/1']],
    ['alerts.of-group', ['--assets-group-id=1042']],
  ])('of %s has no secret in any form, unless it is revealed', async (name, args) => {
    const { run, sandbox } = await aScene()
    const secret = 'Zebra77!secret'
    sandbox.addEvent({
      uid: 'stealer_log/x/1',
      type: 'stealer_log',
      groupIds: [1042],
      data: { password: secret },
      stolen: {
        credentials: [
          { url: 'https://a.example', username: 'a', password: secret, application: 'x' },
        ],
        cookies: [
          { host_key: 'a.example', path: '/', expires_utc: '2030-01-01', name: 'n', value: secret },
        ],
      },
    })
    sandbox.addCredentials([{ hash: secret, identityName: `a@b:${secret}`, identifierIds: [77] }])
    const isOne = name === 'events.get' || name === 'events.activity'
    for (const form of isOne ? ['text', 'json'] : ['text', 'json', 'ndjson']) {
      const { code, out } = await run('api', name, ...args, `--output=${form}`)
      expect([
        code,
        out.includes(secret),
        /hooks\.slack|webhook_url":"https:\/\/[^/]+\/[^•]/.test(out),
      ]).toEqual([0, false, false])
    }
    const { out } = await run('api', name, ...args, '--output=json', '--reveal')
    expect(out).toContain(name === 'alerts.of-group' ? 'webhook_url' : secret)
  })
})

describe('what changes something', () => {
  test('is asked for with the operation, the account and what is sent', async () => {
    const { runAt, run, sent } = await aScene()
    const refused = await runAt('n', ...ignore)
    expect(refused.code).toBe(1)
    for (const word of ['events.act', 'account main', 'POST /firework/v4/events/actions', uid]) {
      expect(refused.err).toContain(word)
    }
    expect((await run(...ignore)).err).toContain('say --yes')
    expect(sent()).toEqual([])
    expect((await runAt('y', ...ignore)).code).toBe(0)
    expect(sent()).toEqual([
      { method: 'POST', path: '/firework/v4/events/actions', body: ignoring },
    ])
  })

  test.each(writes)('is not sent unless it is said: %s', async (name, body) => {
    const { run, sent } = await aScene()
    const { code, err } = await run('api', name, ...body)
    expect([code, err]).toEqual([2, expect.stringContaining('say --yes')])
    expect(sent()).toEqual([])
  })

  test.each(['hush"4711', String.raw`hush\4711`, 'h7'])(
    'shows %s in no spelling in its question',
    async (secret) => {
      const { runAt } = await aScene()
      const asset = { name: 's', type: 'secret', search_types: [], data: { secret } }
      const file = aFile('asset.json', JSON.stringify(asset))
      const { err } = await runAt('n', 'api', 'assets.create', '--body', file)
      expect(err).toMatch(/"data":\{"secret":"h?••••/)
      expect(err).not.toContain(JSON.stringify(secret).slice(1, -1))
    },
  )

  test.each([
    ['done', undefined, 'done'],
    ['refused', { effect: 'status', status: 404 }, 'refused'],
    ['lost', { effect: 'lose-answer' }, 'it may have been done'],
    ['not taken', { effect: 'status', status: 429 }, 'not done'],
  ] as const)('is recorded with who did it where it is %s', async (_how, fault, told) => {
    const { run, sandbox } = await aScene()
    if (fault) sandbox.faults.add({ on: '/firework/*', ...fault })
    expect((await run(...ignore, '--yes')).code).toBe(fault ? 1 : 0)
    const { out } = await run('items', 'show', uid)
    expect(out).toContain(`"events.act ignore" asked of the service by ann: ${told}`)
    const [known] = JSON.parse((await run('items', 'show', uid, '--output=json')).out) as object[]
    const writes = [{ by: 'ann', action: 'events.act ignore' }]
    expect(known).toMatchObject({ writes })
  })

  test('is recorded where it names a credential', async () => {
    const { run, prefix } = await aScene()
    const remediating = { targets: [{ credential_hash: 'x' }], action: { type: 'remediate' } }
    const body = JSON.stringify(remediating)
    await run('api', 'credentials.act', '--body', body, '--by=ann', '--yes')
    const [noted] = await tests.redis.xrange(`{${prefix}:main}:writes`, '-', '+')
    expect(JSON.parse(noted![1][1]!)).toMatchObject({
      by: 'ann',
      action: 'credentials.act remediate',
    })
  })

  test('and names no event and no credential is not recorded, since nothing would show it', async () => {
    const { run, prefix } = await aScene()
    const toggle = ['api', 'assets.toggle', '--asset-id=77', '--is-disabled=true', '--yes']
    expect((await run(...toggle)).code).toBe(0)
    expect(await tests.redis.exists(`{${prefix}:main}:writes`)).toBe(0)
    expect((await run(...toggle, '--by=ann')).err).toContain("unknown option '--by=ann'")
  })

  test('is not sent where it cannot be recorded', async () => {
    const { run, sent, prefix } = await aScene()
    await tests.redis.set(`{${prefix}:main}:writes`, 'no stream')
    expect((await run(...ignore, '--yes')).code).toBe(1)
    expect(sent()).toEqual([])
  })
})

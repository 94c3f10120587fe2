/** `silences list|add|expire`, and that the routes' own commands know of what was made by command. */
import { expect, test } from 'vitest'
import { readSilences } from '../../../src/delivery/silences.ts'
import type { Silence } from '../../../src/routing/silences.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aSocScene, type SocScene } from './soc-scene.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()

const hourMs = 3_600_000
const why = ['--reason=known campaign', '--by=jo', '--severity=medium']

async function add({ config }: SocScene, ...args: string[]): Promise<string> {
  const { code, out, err } = await tocsin('silences', 'add', ...args, '--output=json', ...config)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return (JSON.parse(out) as { id: string }).id
}

async function made({ ledger, keys }: SocScene): Promise<Silence[]> {
  return (await readSilences(ledger.redis, keys)).silences
}

test('a silence that is added holds from now on, for as long as it says', async () => {
  const scene = await aSocScene(tests)
  const { code, out } = await tocsin(
    'silences',
    'add',
    'type="paste"',
    'team="brand"',
    '--for=2h',
    ...why,
    ...scene.config,
  )
  expect(code).toBe(0)
  const [silence] = await made(scene)
  expect(silence).toMatchObject({
    id: expect.stringMatching(/^s[0-9a-f]{8}$/),
    owner: 'jo',
    reason: 'known campaign',
    maxSeverity: 'medium',
    origin: 'operator',
  })
  expect(silence!.matchers.map(({ text }) => text)).toEqual(['type="paste"', 'team="brand"'])
  expect(silence!.endsAtMs - silence!.startsAtMs).toBe(2 * hourMs)
  expect(out).toContain(
    `it begins within seconds; "tocsin silences expire ${silence!.id}" ends it\n`,
  )
  expect(out).toMatch(
    new RegExp(`^${silence!.id} +active .* medium +people .*type="paste" team="brand" `, 'm'),
  )
})

test('the answer names the sinks that fall silent, and machines get all unless they are named', async () => {
  const scene = await aSocScene(tests)
  const args = ['silences', 'add', 'feed="brand"', '--for=1h', ...why, ...scene.config]
  expect((await tocsin(...args)).out).toContain(
    'silent: soc, oncall, news; machines get it all the same: siem, lake (--machines silences them too)\n',
  )
  const all = await tocsin(...args, '--machines')
  expect(all.out).toContain('\nsilent: soc, siem, lake, oncall, news\n')
  expect(all.out).toMatch(/ medium +all +.*feed="brand" /)
  expect((await made(scene)).filter(({ machines }) => machines)).toHaveLength(1)
})

test('a sink whose routes take only what a silence leaves alone is not named', async () => {
  const scene = await aSocScene(tests, (text) =>
    text.replace(
      'route: { sinks: [soc, siem, lake, oncall, news] }',
      `route:
  sinks: [soc]
  routes:
    - { name: urgent, matchers: ['severity>=high'], sinks: [oncall, siem] }
    - { name: rest, matchers: ['severity<high', 'type="paste"'], sinks: [news] }`,
    ),
  )
  const add = (...more: string[]) =>
    tocsin('silences', 'add', 'feed="brand"', '--for=1h', ...why, ...more, ...scene.config)
  expect((await add()).out).toContain('\nsilent: soc, news\n')
  expect((await add('severity="high"')).out).toContain('\nno sink falls silent\n')
  expect((await add('--severity=high')).out).toContain(
    'silent: soc, oncall, news; machines get it all the same: siem (',
  )
})

test('an expired silence ends now and stays listed as over', async () => {
  const scene = await aSocScene(tests)
  const id = await add(scene, 'type="paste"', '--for=2h', ...why)
  const { code, out } = await tocsin('silences', 'expire', id, ...scene.config)
  expect({ code, out }).toEqual({ code: 0, out: `${id} ends within seconds\n` })
  expect((await made(scene))[0]!.endsAtMs).toBeLessThanOrEqual(Date.now() + 5_000)
  expect((await tocsin('silences', 'list', ...scene.config)).out).toMatch(
    new RegExp(`^${id} +over `, 'm'),
  )
  const again = await tocsin('silences', 'expire', id, ...scene.config)
  expect(again).toMatchObject({ code: 0, out: `${id} was over already\n` })
})

const item = JSON.stringify({
  metadata: { uid: 'paste/source.example/1', type: 'paste', severity: 'low' },
})

test('routes explain knows of silences made by command', async () => {
  const scene = await aSocScene(tests)
  const event = [aFile('event.json', item)]
  const before = await tocsin('routes', 'explain', ...event, ...scene.config)
  expect(before.out).toContain('  by no silence and no inhibit rule\n')
  const id = await add(scene, 'type="paste"', '--for=2h', ...why)
  const after = await tocsin('routes', 'explain', ...event, ...scene.config)
  expect(after.out).toMatch(new RegExp(`  by the silence ${id} until `))
  const json = await tocsin('routes', 'explain', ...event, '--output=json', ...scene.config)
  expect(JSON.parse(json.out)).toMatchObject([{ silence: { id, origin: 'operator' } }])
})

/** `silences list|add|expire`, and that the routes' own commands know of what was made by command. */
import { expect, test } from 'vitest'
import { readSilences } from '../../../src/delivery/silences.ts'
import type { Silence } from '../../../src/routing/silences.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aSocScene, type SocScene } from './soc-scene.ts'
import { aFile, tocsin } from './tocsin.ts'

const tests = redisForTests()

const why = ['--reason=known campaign', '--by=jo', '--severity=medium']

async function add({ config }: SocScene, ...args: string[]): Promise<string> {
  const { code, out, err } = await tocsin('silences', 'add', ...args, '--output=json', ...config)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return (JSON.parse(out) as { id: string }).id
}

async function made({ ledger, keys }: SocScene): Promise<Silence[]> {
  return (await readSilences(ledger.redis, keys)).silences
}

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

/** `silences list|add|expire`, and that `routes explain` knows of what was made by command. */
import { expect, test } from 'vitest'
import { readSilences } from '../../../src/delivery/silences.ts'
import { writeSilence } from '../../../src/store/silences.ts'
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
    id: expect.stringMatching(/^s[a-z0-9]{6}$/),
    owner: 'jo',
    reason: 'known campaign',
    maxSeverity: 'medium',
    origin: 'command',
  })
  expect(silence!.matchers.map(({ text }) => text)).toEqual(['type="paste"', 'team="brand"'])
  expect(silence!.endsAtMs - silence!.startsAtMs).toBe(2 * hourMs)
  expect(out).toContain(
    `silence ${silence!.id} begins within seconds; "tocsin silences expire ${silence!.id}" ends it\n`,
  )
  expect(out).toContain(`  ${silence!.id} (active): type="paste" and team="brand", up to medium, `)
})

test('every mistake of a silence is told at once', async () => {
  const { config } = await aSocScene(tests)
  const wrong = ['typo="x"', 'tpye="y"', '--for=2h', ...why]
  const { code, err } = await tocsin('silences', 'add', ...wrong, ...config)
  expect(code).toBe(2)
  expect(err).toContain('typo="x": neither a name')
  expect(err).toContain('tpye="y": neither a name')
})

test('what cannot be read as a silence is listed as such', async () => {
  const { ledger, keys, config } = await aSocScene(tests)
  await writeSilence(ledger.redis, keys, { id: 'odd', text: '{"matchers":[]}' })
  const { out } = await tocsin('silences', 'list', ...config)
  expect(out).toContain('odd cannot be read: it silences nothing')
})

test('an expired silence ends now and stays listed as over', async () => {
  const scene = await aSocScene(tests)
  const id = await add(scene, 'type="paste"', '--for=2h', ...why)
  const { code, out } = await tocsin('silences', 'expire', id, ...scene.config)
  expect({ code, out }).toEqual({ code: 0, out: `${id} ends within seconds\n` })
  expect((await made(scene))[0]!.endsAtMs).toBeLessThanOrEqual(Date.now() + 5_000)
  expect((await tocsin('silences', 'list', ...scene.config)).out).toContain(`${id} (over)`)
  const again = await tocsin('silences', 'expire', id, ...scene.config)
  expect(again).toMatchObject({ code: 0, out: `${id} was over already\n` })
})

test('one of the file is not expired by command: its line is named', async () => {
  const scene = await aSocScene(tests)
  const [silence] = scene.parsed.silences
  const { code, err } = await tocsin('silences', 'expire', silence!.id, ...scene.config)
  expect(err).toMatch(/tocsin\.yaml:\d+:\d+ silences\[0\]: c[0-9a-f]{8} is a silence of the file; /)
  expect(err).toContain('remove it there')
  expect(code).toBe(2)
})

const item = JSON.stringify({
  metadata: { uid: 'paste/source.example/1', type: 'paste', severity: 'low' },
})

test('routes explain knows of silences made by command', async () => {
  const scene = await aSocScene(tests)
  const event = ['--event', aFile('event.json', item)]
  const before = await tocsin('routes', 'explain', ...event, ...scene.config)
  expect(before.out).toContain('  by no silence and no inhibit rule\n')
  const id = await add(scene, 'type="paste"', '--for=2h', ...why)
  const after = await tocsin('routes', 'explain', ...event, ...scene.config)
  expect(after.out).toMatch(new RegExp(`  by a silence:\n +${id} \\(active\\)`))
  const json = await tocsin('routes', 'explain', ...event, '--output=json', ...scene.config)
  expect(JSON.parse(json.out)).toMatchObject([{ silence: { id, origin: 'command' } }])
})

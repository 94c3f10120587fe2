/** Whatever the service, a leak site or a sink writes, a command shows it as text and no terminal acts upon it. */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createCircuit } from '../../src/delivery/circuit.ts'
import { reportError } from '../../src/cli/program.ts'
import { createTerminal } from '../../src/cli/terminal.ts'
import { aServiceScene, type ServiceScene } from '../integration/cli/service-scene.ts'
import { aSocScene } from '../integration/cli/soc-scene.ts'
import { tocsin, type Ended } from '../integration/cli/tocsin.ts'
import { redisForTests, takeIn } from '../support/ledger.ts'
import { startHostileService } from './hostile-service.ts'
import { actedUpon, allHostileWords as words, hostileWords } from './hostile-words.ts'

const tests = redisForTests()

/** What is wrong with the output: nothing of the words is to be seen, or something of them acts. */
function faultsOf({ out, err }: Ended): string[] {
  const shown = `${out}${err}`.replace(/^\uFEFF/, '') // with which a table for spreadsheets begins
  return [
    ...(/cle(?:ared|…)|owned|forged/.test(shown) ? [] : [`nothing is shown: ${shown}`]),
    ...(actedUpon.test(shown.replaceAll('\n', '')) ? [JSON.stringify(shown)] : []),
    ...(/^(?:2026-11-01 ERROR|\{"level")/m.test(shown) ? [`a line is forged: ${shown}`] : []),
  ]
}

const uid = 'stealer_log/stealer_logs_live/4711'
async function aHostileScene(): Promise<ServiceScene> {
  const service = await startHostileService()
  onTestFinished(() => service.stop())
  const scene = await aServiceScene(tests, {
    change: (text) =>
      text.replace(/base_url: "([^"]+)"/, (_found, url: string) => {
        service.standsBefore(url)
        return `base_url: "${service.url}"`
      }),
  })
  const stolen = { url: 'a', username: 'b', password: 'c', application: 'd' }
  scene.sandbox.addEvent({
    uid,
    type: 'stealer_log',
    groupIds: [1042],
    data: { title: 't', [words]: words, deep: [{ [words]: words }] },
    highlights: { [words]: [words], content: ['x'] },
    stolen: { credentials: [stolen] },
  })
  scene.sandbox.addCredentials([{ hash: 'x', hashType: null, identifierIds: [77] }])
  service.says(words)
  return scene
}

const asked = [
  `events search --group=1042`,
  `events search --group=1042 --reveal`,
  `events get ${uid}`,
  `events get ${uid} --reveal`,
  `api events.expand --uid=${uid} --field=credentials`,
  `api events.expand --uid=${uid} --field=credentials --reveal`,
  `api events.get --uid=${uid}`,
  `api events.legacy-search --query=*`,
  `api events.note --uid=${uid} --notes=n --yes`,
  `api credentials.feed --identifier-id=77`,
  `api credentials.feed --identifier-id=77 --reveal`,
  `credentials search --domain=example.com`,
  `api alerts.of-group --assets-group-id=1042`,
  `api assets.toggle --asset-id=77 --is-disabled=true --yes`,
  `api assets.get --asset-id=999`,
  `assets list`,
  `groups list`,
  `tenants list`,
  `api reports.list`,
  `api reports.get --report-id=9001`,
  'doctor',
]

describe('of what the service says', () => {
  test.each(asked)('%s shows text', async (command) => {
    const { run } = await aHostileScene()
    for (const form of ['text', 'json']) {
      expect(faultsOf(await run(...command.split(' '), `--output=${form}`))).toEqual([])
    }
  })
})

describe('of what the ledger keeps', () => {
  const event = {
    uid: 'paste/x/\u202Etxt.exe\u200B',
    type: words,
    source: words,
    severity: words,
    tags: [words],
    notes: words,
    identifiers: [{ id: 77, name: words }],
    highlights: { [words]: [words], content: [words] },
  }

  test('every command shows text', async () => {
    const scene = await aSocScene(tests)
    await scene.show(['soc', 'siem'], [event])
    await scene.show(['oncall', 'news'], [{ ...event, uid: 'paste/x/2', severity: 'low' }])
    await scene.attempt('soc', { outcome: 'dead', reason: 'gone', answer: words })
    const failed = { reason: 'unauthorized', answer: words } as const
    await createCircuit(tests.redis, scene.keys).report('soc', 'broken', failed)
    const malformed = [{ uid: event.uid, problem: words, raw: JSON.stringify({ words }) }]
    await takeIn(scene.ledger, [], { feed: 'brand', malformed })
    const run = (...args: string[]): Promise<Ended> => tocsin(...args, ...scene.config)
    const idOf = async (state: string): Promise<string> => {
      const { out } = await run('items', 'list', `--state=${state}`, '--output=json')
      return (JSON.parse(out) as { items: { id: string }[] }).items[0]!.id
    }
    const [letter, entry] = [await idOf('dead'), await idOf('quarantined')]
    for (const form of ['text', 'json']) {
      for (const args of [
        ...[event.uid, letter, entry].map((id) => ['items', 'show', id]),
        ['items', 'list', '--state', 'all'],
        ['routes', 'explain', event.uid],
        ...['feeds', 'sinks'].map((noun) => [noun, 'list']),
        ['feeds', 'list', 'brand'],
        ['sinks', 'list', 'soc'],
        ['status'],
      ]) {
        expect(faultsOf(await run(...args, `--output=${form}`))).toEqual([])
      }
    }
  })

  test('an id that nobody knows is said as text', async () => {
    const { config } = await aSocScene(tests)
    const pasted = words.replaceAll('\n', ' ')
    for (const verb of ['show', 'resend', 'discard']) {
      expect(faultsOf(await tocsin('items', verb, pasted, ...config))).toEqual([])
    }
  })
})

test.each(hostileWords)(
  'an error that nobody foresaw, with words that %s, shows text',
  async (_does, said) => {
    const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
    reportError(new Error(said), createTerminal({ input, output, errors }))
    errors.end()
    const err = await text(errors)
    expect(err).toContain('this is a defect of Tocsin')
    expect(err.replaceAll('\n', '')).not.toMatch(actedUpon)
  },
)

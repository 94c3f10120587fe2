/** What commands on the ledger print: of every state that an event can be in, and of each mistake. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { aFile } from '../integration/cli/tocsin.ts'
import { redisForTests } from '../support/ledger.ts'
import { aLedgerScene } from './ledger-scene.ts'
import { transcript, transcriptFile } from './transcript.ts'

const tests = redisForTests()

beforeEach(() => void vi.stubEnv('USER', 'ann'))
afterEach(() => void vi.unstubAllEnvs())

test('accounts', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, ({ type }) =>
      type(`
      accounts list
      accounts list --output json
      accounts list --output xml
      # writes
      accounts discard umbrella
      accounts discard umbrella --yes --by ann
      accounts discard umbrella --yes
      accounts discard main --yes
      accounts discard umbrela --yes --output json
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('accounts'))
})

test('feeds', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, ({ type }) =>
      type(`
      feeds list
      feeds list --output json
      feeds list --output xml
      feeds list --why
      # writes
      feeds pause brand --reason "a look at the group"
      feeds pause brand
      feeds pause brnd --reason why
      feeds resume brand
      feeds resume brand
      feeds resume brnd
      feeds rewind brand --to 7d
      feeds rewind brand --to 7d --yes
      feeds rewind brand --to yesterday --yes
      feeds rewind brand --yes
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('feeds'))
})

test('sinks', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, ({ type }) =>
      type(`
      sinks list
      sinks list --output json
      sinks list --output xml
      # writes
      sinks pause lake --reason maintenance
      sinks pause lake
      sinks list
      sinks resume lake
      sinks resume lake
      sinks resume desk
      sinks resume dead
      sinks resume dsk
      sinks pause lak --reason why
      sinks move lake --to siem
      sinks move lake --to siem --yes
      sinks move gone --to lake --yes --output json
      sinks move lake --to lak --yes
      sinks move lake --yes
      sinks discard soc
      sinks discard soc --yes
      sinks discard soc --yes
      sinks discard sco --yes
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('sinks'))
})

test('dead letters', async () => {
  const scene = await aLedgerScene(tests)
  const { run } = scene
  await expect(
    await transcript(run, async ({ type, know }) => {
      const { out } = await run('dead-letters', 'list', '--output', 'json')
      const { letters } = JSON.parse(out) as { letters: { id: string }[] }
      know('one', letters[0]!.id)
      know('two', letters[1]!.id)
      await type(`
      dead-letters list
      dead-letters list --output json
      dead-letters list --sink lake --limit 1
      dead-letters list --sink lak
      dead-letters list --page 2
      dead-letters list --limit none
      dead-letters show $one
      dead-letters show $one --output json
      dead-letters show nothing
      # writes
      dead-letters replay
      dead-letters replay $one
      dead-letters replay $one
      dead-letters replay --all
      dead-letters replay --all --sink lake --reason unauthorized
      dead-letters discard $two
      dead-letters discard $two --yes --output json
      dead-letters discard $two --yes
      dead-letters discard --all --sink lake --yes
      dead-letters discard --all --sink lak --yes
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('dead-letters'))
})

test('quarantine', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, async ({ type, know }) => {
      const { out } = await run('quarantine', 'list', '--output', 'json')
      const { items } = JSON.parse(out) as { items: { id: string }[] }
      know('one', items[0]!.id)
      know('two', items[1]!.id)
      know('one_short', items[0]!.id.slice(0, 12))
      know('two_short', items[1]!.id.slice(0, 12))
      await type(`
      quarantine list
      quarantine list --output json
      quarantine list --feed leaks
      quarantine list --feed brnd
      quarantine show $one
      quarantine show $one --output json
      quarantine show nothing
      # writes
      quarantine replay
      quarantine replay $one
      quarantine replay $one --yes
      quarantine replay $one --yes
      quarantine replay --all --feed brand
      quarantine replay --all --feed brand --yes --output json
      quarantine replay --all --feed brnd --yes
      quarantine list
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('quarantine'))
})

test('deliveries', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, async ({ type, know }) => {
      const { out } = await run('deliveries', 'list', '--output', 'json')
      const { items } = JSON.parse(out) as { items: { id: string; events: unknown }[] }
      for (const [n, { id }] of items.entries()) know(`id${n}`, id)
      await type(`
      deliveries list
      deliveries list --output json --limit 2
      deliveries list --sink lake --state delivered,dead
      deliveries list --state sent
      deliveries list --sink lak
      deliveries list --account umbrella
      deliveries list --account nobody
      deliveries list --since soon
      deliveries show $id0
      deliveries show $id1
      deliveries show $id0 --output json
      deliveries show nothing
      # writes
      deliveries resend --sink lake --since 1h
      deliveries resend --sink lake --since 1h --yes --by ann
      deliveries resend --sink siem --since 1h --yes --output json
      deliveries resend --sink soc --since 1h --yes
      deliveries resend --sink lake --since 1h --uid leak/site/unknown --yes
      deliveries resend --sink lak --since 1h --yes
      deliveries resend --sink lake --yes
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('deliveries'))
})

test('silences', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, async ({ type, know }) => {
      const why = `--reason 'known campaign' --owner jo --severity medium`
      await type(`
      silences list
      silences list --output json
      silences list --output xml
      # writes
      silences expire nothing
    `)
      const said = await type(`silences add 'type="paste"' team=brand --for 2h ${why}`)
      know('one', /expire (\w+)/.exec(said)?.[1] ?? '')
      const told = await type(`silences add 'feed="brnd"' --for 1h --machines ${why} --output json`)
      know('two', (JSON.parse(told) as { id: string }).id)
      await type(`
      silences list
      silences list --output json
      silences expire $one
      silences expire $one
      silences expire $two --output json
      silences list
      silences add 'type="paste"' --until 2020-01-01T00:00Z ${why}
      silences add 'type~"paste"' --for 2h ${why}
      silences add 'tpye="paste"' --for 2h ${why}
      silences add 'type="paste"' --for 40d ${why}
      silences add 'type="paste"' --for 2h
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('silences'))
})

test('digests', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, ({ type }) =>
      type(`
      digests preview oncall
      digests preview oncall --recipient bob@example.com --output json
      digests preview oncall --recipient eve@example.com
      digests preview soc
      digests preview oncal
      # writes
      digests send oncall
      digests send oncall
      digests send oncall --output json
      digests send soc
      digests send oncal
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('digests'))
})

test('explain', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, ({ type }) =>
      type(`
      explain leak/site/queued
      explain leak/site/delivered
      explain leak/site/retrying
      explain leak/site/dead
      explain leak/site/grouped
      explain paste/site/digest
      explain paste/site/shadow
      explain chat/site/silenced
      explain chat/site/muted
      explain bot/market/sent1
      explain bot/market/frozen1
      explain paste/site/bad
      explain paste/site/left
      explain paste/site/orphan
      explain leak/site/sending
      explain leak/site/diverted
      explain leak/site/discarded
      explain leak/site/raised
      explain leak/site/trimmed
      explain leak/site/unknown
      explain leak/site/queued --output json
      explain leak/site/trimmed --output json
      explain leak/site/unknown --output json
      explain leak/site/queued --account second
      explain leak/site/queued --account nobody
      explain
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('explain'))
})

test('events list', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, ({ type }) =>
      type(`
      events list
      events list --severity high --type bot --limit 2
      events list --severity low --limit 1 --output json
      events list --feed brand --account umbrella --wide
      events list --severity grave
      events list --account nobody
      events list --since soon
      events list --limit 0
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('events-list'))
})

/** As the search gives an event. */
const searchItem = {
  metadata: {
    uid: 'ransomleak/gang/1',
    type: 'ransomleak',
    severity: 'critical',
    estimated_created_at: '2026-11-01T12:00:00Z',
    flare_url: 'https://app.example.com/#/uid?uid=ransomleak/gang/1',
  },
  highlights: { content: ['<mark>example.com</mark> is next'] },
  identifiers: [{ id: 77, name: 'example.com' }],
}

test('routes and render', async () => {
  const { run } = await aLedgerScene(tests)
  const constant = { spans: false }
  const event = aFile('event.json', JSON.stringify(searchItem))
  await expect(
    await transcript(
      run,
      ({ type }) =>
        type(`
      routes show
      routes show --output json
      routes show --output xml
      routes explain --uid leak/site/queued
      routes explain --uid paste/site/shadow
      routes explain --uid leak/site/queued --output json
      routes explain --uid leak/site/unknown
      routes explain --uid leak/site/queued --feed brnd
      routes explain --event ${event} --feed brand
      routes explain --event missing.json --feed brand
      routes explain
    `),
      constant,
    ),
  ).toMatchFileSnapshot(transcriptFile('routes'))
  await expect(
    await transcript(
      run,
      ({ type }) =>
        type(`
      render leak/site/queued --sink oncall
      render leak/site/queued --sink soc
      render leak/site/queued --sink lake --output json
      render ${event} --sink desk --feed brand
      render ${event} --sink desk
      render leak/site/queued --sink lak
      render leak/site/unknown --sink soc
      render leak/site/queued
    `),
      constant,
    ),
  ).toMatchFileSnapshot(transcriptFile('render'))
})

test('audit --ledger', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, ({ type }) =>
      type(`
      audit --ledger
      audit --ledger --output json
      audit --ledger --repair
      audit --feed brnd
      audit --since soon
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('audit-ledger'))
})

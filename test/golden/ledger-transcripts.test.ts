/** What commands on the ledger print: of every state that an event can be in, and of each mistake. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { aFile } from '../integration/cli/tocsin.ts'
import { redisForTests } from '../support/ledger.ts'
import { aLedgerScene } from './ledger-scene.ts'
import { type Run, transcript, transcriptFile } from './transcript.ts'

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
      accounts list umbrella
      accounts list umbrela
      # writes
      accounts discard umbrella --yes
      items discard --account umbrella --state pending --yes
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
      feeds list brand
      feeds list brnd
      feeds list --output json
      feeds list --output xml
      feeds list --account second
      feeds list --account nobody
      # writes
      feeds pause leaks --reason 'not yet'
      feeds list leaks
      feeds resume leaks
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
      sinks list desk
      sinks list dsk
      sinks list --account second
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
      sinks flush oncall
      sinks flush oncall --output json
      sinks flush soc
      sinks flush oncal
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('sinks'))
})

test('status', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, ({ type }) =>
      type(`
      status
      status --account second
      status --output json
      status --account nobody
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('status'))
})

test('report', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, ({ type }) =>
      type(`
      report
      report --by destination --since 2d
      report --by reason
      report --by severity --account main
      report --by feed --output csv
      report --by sink --output json
      report --since 2026-01-01 --until 2026-01-02
      report --by colour
      report --account nobody
      report --since soon
    `),
    ),
  ).toMatchFileSnapshot(transcriptFile('report'))
})

test('items list', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, async ({ type, know }) => {
      for (const [n, id] of (await quarantineIds(run)).entries()) know(`q${n}`, id)
      await type(`
      items list
      items list --output json --limit 1
      items list --state pending
      items list --state delivered,discarded,diverted,suppressed
      items list --state delivered --sink lake --output json
      items list --state pending --severity critical --account main
      items list --state delivered --limit 1
      items list --state dead --limit 1
      items list --feed leaks
      items list --account second
      items list --sink lak
      items list --feed brnd
      items list --account nobody
      items list --state sent
      items list --severity grave
      items list --since soon
      items list --limit 0
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('items-list'))
})

test('items show', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, async ({ type, know }) => {
      for (const [n, id] of (await quarantineIds(run)).entries()) know(`q${n}`, id)
      const { out } = await run('items', 'list', '--state=frozen', '--output=json')
      know('frozen', (JSON.parse(out) as { items: { delivery: string }[] }).items[0]!.delivery)
      await type(`
      items show leak/site/queued
      items show leak/site/delivered
      items show leak/site/retrying
      items show leak/site/dead
      items show leak/site/grouped
      items show paste/site/digest
      items show paste/site/shadow
      items show chat/site/silenced
      items show chat/site/muted
      items show bot/market/sent1
      items show bot/market/frozen1
      items show $frozen
      items show paste/site/bad
      items show $q0
      items show $q0 --output json
      items show paste/site/left
      items show paste/site/orphan
      items show leak/site/sending
      items show leak/site/diverted
      items show leak/site/discarded
      items show leak/site/raised
      items show leak/site/trimmed
      items show leak/site/unknown
      items show leak/site/queued --output json
      items show leak/site/trimmed --output json
      items show leak/site/unknown --output json
      items show leak/site/queued --account second
      items show leak/site/queued --account nobody
      items show abcd
      items show
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('items-show'))
})

async function quarantineIds(run: Run): Promise<string[]> {
  const { out } = await run('items', 'list', '--state=quarantined', '--output=json')
  const { items } = JSON.parse(out) as { items: { id: string }[] }
  return items.map(({ id }) => id)
}

test('items resend, move and discard', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, async ({ type, know }) => {
      for (const [n, id] of (await quarantineIds(run)).entries()) know(`q${n}`, id)
      await type(`
      # writes
      items resend
      items resend leak/site/dead
      items resend leak/site/dead --yes --by ann
      items resend leak/site/dead --yes
      items show leak/site/dead
      items resend --sink lake --severity critical --yes
      items resend --sink lake --output json --yes
      items resend $q0
      items resend --sink siem --state delivered --since 1h
      items resend --sink siem --state delivered --since 1h --yes
      items resend leak/site/unknown --yes
      items resend --sink lak --yes
      items move --sink lake --to siem
      items move --sink lake --to siem --yes --by ann
      items move --sink lake --to siem --yes
      items move --sink gone --to lake --yes --output json
      items move --sink lake --to lake --yes
      items move --sink lake --to lak --yes
      items move --sink lake --yes
      items discard --sink soc
      items discard --sink soc --yes --by ann
      items list --state discarded --sink soc --severity critical
      items discard --sink soc --yes
      items discard $q0
      items discard $q0 --yes
      items discard --state quarantined --yes
      items discard --yes
      items discard --sink sco --yes
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('items-acts'))
})

test('silences', async () => {
  const { run } = await aLedgerScene(tests)
  await expect(
    await transcript(run, async ({ type, know }) => {
      const why = `--reason 'known campaign' --by jo --severity medium`
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
      silences add 'type="paste"' --for long ${why}
      silences add --for 2h ${why}
      silences add 'type is paste' --for 2h ${why}
      silences add 'type="paste"' --for 2h --by jo --reason x --severity bad
      silences add 'type~"paste"' --for 2h ${why}
      silences add 'tpye="paste"' --for 2h ${why}
      silences add 'type="paste"' --for 40d ${why}
      silences add 'type="paste"' --for 2h
    `)
    }),
  ).toMatchFileSnapshot(transcriptFile('silences'))
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
      routes explain leak/site/queued
      routes explain paste/site/shadow
      routes explain leak/site/queued --output json
      routes explain leak/site/unknown
      routes explain leak/site/queued --feed brnd
      routes explain ${event} --feed brand
      routes explain missing.json --feed brand
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
  const { run, ledger } = await aLedgerScene(tests)
  await expect(
    await transcript(run, async ({ type }) => {
      await type(`
      audit --ledger
      audit --ledger --output json
      audit --ledger --feed brand
      audit --feed brnd
      audit --since soon
    `)
      await ledger.redis.zremrangebyrank(ledger.key('due', 'lake'), '0', '0')
      await ledger.redis.hincrby(ledger.key('counters'), 's|soc|pending|queued', 3)
      await type('audit --ledger')
    }),
  ).toMatchFileSnapshot(transcriptFile('audit-ledger'))
})

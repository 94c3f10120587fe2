/** Words of a feed that are written from right to left leave those of Tocsin where they are. */
import { expect, test } from 'vitest'
import type { Delivery } from '../../../src/sinks/sink.ts'
import { previewSlack } from '../../../src/sinks/slack/slack-message.ts'
import { cardText, renderTeams } from '../../../src/sinks/teams/teams-card.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { digestFacts, summarised } from '../../support/summaries.ts'

const [first, second] = ['חברה 12', 'בנק 7']
const isolated = `\u2068Ransom leak: ${first} named by lockbit\u2069`

const destination = { id: 'soc', label: 'soc' }
const about = { id: 'abc', destination, attempt: 1, mayBeRepeat: false }

function sayDigest(): string[] {
  const members = [first, second].map((name, id) =>
    aMember({
      event: aThreatEvent({
        type: 'ransomleak',
        uid: `ransomleak/lockbit/${id}`,
        source: 'lockbit',
        identifiers: [{ id, name: name! }],
        highlights: { title: [name!] },
      }),
    }),
  )
  const undelivered = { severity: 'high', type: 'paste', uid: 'a/b/שלום', title: first! }
  const digest = digestFacts({ dead: 1, undelivered: [undelivered] })
  const content = summarised(members, { kind: 'digest', digest })
  const delivery: Delivery = { ...about, ...content }
  const { inBlocks, plainText } = previewSlack(delivery)
  return [JSON.stringify(inBlocks), plainText.text ?? '', cardText(renderTeams(delivery))]
}

test.each([
  ['Slack', 0],
  ['Slack without blocks', 1],
  ['Teams', 2],
])('in %s titles are isolated from what stands behind them', (_where, at) => {
  const said = sayDigest()[at]
  expect(said).toContain(` ${isolated} · `)
  expect(said).toContain(` \u2068${first}\u2069 (not delivered) `)
})

test.each([
  ['Slack', 0],
  ['Teams', 2],
])('in %s names are isolated from their counts', (_where, at) => {
  expect(sayDigest()[at]).toMatch(/1 \u2068בנק 7\u2069(?: · |\\n)1 \u2068חברה 12\u2069/u)
})

test('a uid, which people copy into commands, holds no isolates', () => {
  const uid = 'ransomleak/lockbit/שלום'
  const members = [aMember({ event: aThreatEvent({ uid }), routes: ['urgent'] })]
  const delivery: Delivery = { ...about, members }
  const { inBlocks, plainText } = previewSlack(delivery)
  const looks = [JSON.stringify(inBlocks), plainText.text, cardText(renderTeams(delivery))]
  for (const look of looks) expect(look).toContain(` · uid ${uid} · routes urgent`)
})

import { expect, test } from 'vitest'
import { objectsIn } from '../../../support/objects-in.ts'
import { findTeamsProblem } from '../../../../src/sandbox/receivers/teams-receiver.ts'
import type { Delivery } from '../../../../src/sinks/sink.ts'
import { cardText, renderTeams, type TeamsMessage } from '../../../../src/sinks/teams/teams-card.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { summarised } from '../../../support/summaries.ts'

function render(content: Partial<Delivery>): TeamsMessage {
  return renderTeams({
    id: 'abc',
    destination: { id: 'soc', label: 'soc' },
    members: [],
    attempt: 1,
    mayBeRepeat: false,
    ...content,
  })
}

test('planted markup and mentions arrive letter by letter, and links and dates that phones would read with a blank in them', () => {
  const planted =
    '<at>Everyone</at> ![x](y) [Open event](https:evil%2Ecom) **bold** &lt; {{DATE(2026-11-23T12:00:00Z)}} {{x}}'
  const message = render({ members: [aMember({ event: aThreatEvent({ notes: planted }) })] })
  expect(cardText(message)).toContain(
    'Notes: <at>Everyone</at> ![x] (y) [Open event] (https:evil%2Ecom) **bold** &lt; { {DATE(2026-11-23T12:00:00Z)}} {{x}}',
  )
  expect(findTeamsProblem(JSON.stringify(message))).toBeNull()
})

test.each([
  ['critical', 'CRITICAL', 'attention'],
  ['high', 'HIGH', 'warning'],
  ['medium', 'MEDIUM', 'accent'],
  ['low', 'LOW', 'default'],
  ['info', 'INFO', 'default'],
  ['none', 'UNKNOWN ("none")', 'attention'],
  ['constructor', 'UNKNOWN ("constructor")', 'attention'],
])('severity %s is said as %s, in the colour %s', (severity, text, color) => {
  const message = render({ members: [aMember({ event: aThreatEvent({ severity }) })] })
  expect(runsOf(message)[0]).toMatchObject({ text, color })
})

test('a link over http can be opened, as where the web application of an intranet has no TLS', () => {
  const link = 'http://fw.intranet:8080/#/uid?uid=x'
  const members = [aMember({ link }), aMember({ link, id: 'item2' })]
  const [one, several] = [render({ members: [members[0]!] }), render(summarised(members))]
  for (const message of [one, several]) {
    expect(findTeamsProblem(JSON.stringify(message))).toBeNull()
    expect(objectsIn(message).filter(({ url }) => url === link)).not.toEqual([])
  }
})

function runsOf(message: TeamsMessage): Record<string, unknown>[] {
  return objectsIn(message).filter(({ type }) => type === 'TextRun')
}

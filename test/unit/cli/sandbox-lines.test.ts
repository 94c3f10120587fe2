import { expect, test } from 'vitest'
import { showReceived } from '../../../src/cli/sandbox.ts'
import type { Context } from '../../../src/cli/context.ts'
import type { Received } from '../../../src/sandbox/receivers/received.ts'
import { previewSlack } from '../../../src/sinks/slack/slack-message.ts'
import { renderIncident } from '../../../src/sinks/pagerduty/pagerduty-sink.ts'
import { renderTeams } from '../../../src/sinks/teams/teams-card.ts'
import { aMember } from '../../support/deliveries.ts'

const delivery = {
  id: 'e1',
  destination: { id: 'soc', label: 'soc' },
  members: [aMember()],
  attempt: 1,
  mayBeRepeat: false,
}

function lineFor(sink: Received['sink'], json: unknown): string {
  const lines: string[] = []
  const terminal = {
    print: (line: string) => lines.push(line),
    paint: (_: string, text: string) => text,
  }
  const message: Received = {
    sink,
    id: 'e1',
    atMs: 0,
    to: '/there',
    headers: {},
    body: '',
    json,
    mail: null,
    uids: ['leak/a/1', 'leak/a/2'],
  }
  showReceived({ terminal } as unknown as Context, { output: 'text' }, message)
  return lines.join('\n')
}

test('the sandbox shows the uids of what a webhook received, whatever its events hold', () => {
  const json = { data: { items: [{ detail: { text: 'of a leak', summary: 'of a leak' } }] } }
  expect(lineFor('webhook', json)).toMatch(/: leak\/a\/1, leak\/a\/2$/)
})

test.each([
  ['slack', previewSlack(delivery)],
  ['teams', renderTeams(delivery)],
  ['pagerduty', renderIncident(delivery)],
] as const)('the sandbox shows the title of what %s received', (sink, json) => {
  expect(lineFor(sink, JSON.parse(JSON.stringify(json)))).toMatch(/: HIGH( ·)? Stealer log: /)
})

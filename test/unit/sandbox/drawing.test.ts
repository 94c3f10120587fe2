/** What is drawn of messages: all of it, and never as markup of its own. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { drawMail, drawPage, markup, safeLink } from '../../../src/sandbox/drawing/html.ts'
import { drawReceived } from '../../../src/sandbox/drawing/live-page.ts'
import { drawSlack } from '../../../src/sandbox/drawing/slack.ts'
import { drawTeams } from '../../../src/sandbox/drawing/teams.ts'
import { slackText, type SlackMessage } from '../../../src/sinks/slack/slack-message.ts'
import type { Received, SinkName } from '../../../src/sandbox/receivers/received.ts'
import {
  galleryPage,
  openSinks,
  previewOf,
  type Previews,
  specialScenes,
} from '../../gallery/page.ts'
import { aFile } from '../../integration/cli/tocsin.ts'
import { typeScenes } from '../../support/scenes.ts'

let sinks: Previews
beforeAll(async () => {
  sinks = await openSinks()
})
afterAll(async () => {
  for (const sink of sinks.values()) await sink.close()
})

/** Every text in a message, as its readers see it. */
function textsIn(value: unknown, key = ''): string[] {
  if (typeof value === 'string') return key === 'text' || key === 'title' ? [decode(value)] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => textsIn(inner, name))
}

function decode(text: string): string {
  return text
    .replaceAll(/<([@!][^<>]+)>/g, '$1')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

function wordsIn(html: string): string {
  return decode(html.replaceAll(/<[^>]*>/g, ''))
}

describe('every message of every type and kind is drawn whole', () => {
  test.each([...specialScenes, ...typeScenes])('%s', (_name, delivery) => {
    const slack = previewOf(sinks, 'slack', delivery)!.body as SlackMessage
    const drawnSlack = drawSlack(slack).text
    const teams = previewOf(sinks, 'teams', delivery)!.body
    const drawnTeams = drawTeams(teams).text
    expect(drawnSlack + drawnTeams).not.toContain('Not drawn')
    const inLines = decode(slackText(slack)).replaceAll(/\s+|: /g, '')
    for (const text of textsIn(slack.blocks)) {
      expect(wordsIn(drawnSlack)).toContain(text)
      expect(inLines).toContain(text.replaceAll(/\s+|: /g, ''))
    }
    for (const text of textsIn(teams)) expect(wordsIn(drawnTeams)).toContain(text)
  })
})

test('what is not known is an error that is seen', () => {
  const strange = { type: 'carousel', text: '<b>' }
  const inRich = {
    type: 'rich_text',
    elements: [{ type: 'rich_text_section', elements: [strange] }],
  }
  for (const blocks of [[strange], [inRich], [{ type: 'section', fields: [strange] }]]) {
    expect(drawSlack({ blocks }).text).toMatch(/class="unknown"><strong>Not drawn: .*carousel/)
  }
  const body = [strange, { type: 'RichTextBlock', inlines: [strange] }]
  const card = drawTeams({ attachments: [{ content: { body } }] }).text
  expect(card.match(/Not drawn/g)).toHaveLength(2)
  expect(card).not.toContain('<b>')
})

test('no text becomes markup, and no link a script', () => {
  const hostile = `"><script>alert('x')</script><img src=x onerror=alert(1)>&`
  const run = { type: 'TextRun', text: hostile, selectAction: { url: `javascript:alert('x')` } }
  const page = drawPage({
    title: hostile,
    content: markup`${drawSlack({
      blocks: [
        { type: 'header', text: { type: 'plain_text', text: hostile } },
        { type: 'section', text: { type: 'mrkdwn', text: `<javascript:alert(1)|${hostile}>` } },
        { type: 'actions', elements: [{ type: 'button', text: { text: hostile }, url: hostile }] },
      ],
    })}${drawTeams({ attachments: [{ content: { body: [{ type: 'RichTextBlock', inlines: [run] }] } }] })}${drawMail(hostile, hostile)}`,
  })
  expect(page).not.toMatch(/<script|<img|href="javascript/i)
  expect(page).toMatch(/<iframe sandbox="" title="&quot;&gt;/)
  expect(safeLink('data:text/html,x')).toBe('#')
  expect(safeLink('javascript:alert(1)//https://app.example.com/')).toBe('#')
  expect(safeLink('https://app.example.com/')).toBe('https://app.example.com/')
})

const nothing: Record<SinkName, Received[]> = {
  slack: [],
  teams: [],
  email: [],
  pagerduty: [],
  webhook: [],
}

function mail(subject: string, more: Partial<Received> = {}): Received {
  const html = `<p>${subject}</p>`
  const parts = {
    from: 't@example.com',
    recipients: ['a@example.com'],
    subject,
    text: `t ${subject}`,
    html,
  }
  return {
    sink: 'email',
    id: null,
    atMs: Date.UTC(2026, 10, 1, 8, 30, 5),
    to: 'a@example.com',
    headers: {},
    body: '',
    json: null,
    mail: { ...parts, attachments: [{ name: 'all.csv', content: '' }] },
    uids: [],
    ...more,
  }
}

test('mailboxes show the newest mail as it looks, the others as text, and count the rest', () => {
  const email = Array.from({ length: 15 }, (_, at) => mail(`mail ${at}`))
  const page = drawReceived({ ...nothing, email }, { isStill: false })
  expect(page).toContain('<h2>Mailboxes: 15</h2>')
  expect(page.match(/<iframe/g)).toHaveLength(1)
  expect(page).toContain('srcdoc="&lt;p&gt;mail 14&lt;/p&gt;"')
  expect(page).toContain('<pre>t mail 3</pre>')
  expect(page).not.toContain('<strong>mail 2</strong>')
  expect(page).toContain('and 3 before these')
  expect(page).toContain('08:30:05 UTC to a@example.com')
  expect(page).toContain('all.csv')
  expect(page).not.toContain('Slack')
})

test('a long body of a webhook is cut, and says by how much', () => {
  const webhook = [mail('', { sink: 'webhook', mail: null, json: { data: 'x'.repeat(5000) } })]
  const page = drawReceived({ ...nothing, webhook }, { isStill: true })
  expect(page).toMatch(/… and 35\d\d characters more/)
})

test('the gallery of a configuration shows its sinks with their templates', async () => {
  const path = aFile(
    'tocsin.yaml',
    `accounts: { main: { base_url: "https://api.example.com", api_key: none } }
feeds: { brand: { type: events, identifier_group: 1 } }
sinks:
  soc: { type: slack, url: "https://hooks.example.com/x", templates: { title: 'Case {{ type }}' } }
  siem: { type: webhook, url: "https://siem.example.com/x", templates: { webhook_body: '{"own": {{ uid }}}' } }
route: { sinks: [soc, siem] }
`,
  )
  const page = await galleryPage({ path })
  expect(page).toContain('· Case stealer_log')
  expect(page).toContain('&quot;own&quot;: &quot;')
  expect(page).toMatch(/<p class="soft">soc<\/p>/)
  expect(page).not.toContain('Microsoft Teams</p>')
})

test('the gallery says at each message which template failed for it, and where', async () => {
  const fails = '{% if type == "paste" %}{{ "now" | date }}{% endif %}'
  const path = aFile(
    'tocsin.yaml',
    `accounts: { main: { base_url: "https://api.example.com", api_key: none } }
feeds: { brand: { type: events, identifier_group: 1 } }
sinks:
  soc: { type: slack, url: "https://hooks.example.com/x", templates: { title: 'Case {{ type }}', body: '${fails}a' } }
  other: { type: slack, url: "https://hooks.example.com/x" }
route: { sinks: [soc, other] }
`,
  )
  const page = await galleryPage({ path })
  const said =
    /<p class="unknown">the template body failed: the present time is not known \(line \d, column \d+ of the template\); the built-in look is used<\/p>/g
  const pastes = typeScenes.filter(([, { members }]) => members[0]?.event.type === 'paste')
  expect(pastes.length).toBeGreaterThan(0)
  expect(page.match(said)?.length).toBeGreaterThanOrEqual(pastes.length)
  expect(page).toMatch(
    /<h1>.*<p class="unknown">\d+ messages have the built-in look, since a template failed:/s,
  )
})

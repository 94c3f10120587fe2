import { describe, expect, test } from 'vitest'
import { ownFeed } from '../../../../src/event.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { showTemplated } from '../../../support/templated-sinks.ts'

const people = ['slack', 'teams', 'pagerduty', 'email'] as const

const own = {
  title: 'Case {{ uid | split: "/" | last }} for {{ identifiers[0].name }}',
  body: 'Found in {{ source }}\nTeam: {{ labels.team }}\n\n{% for fact in facts limit: 1 %}{{ fact.label }} is {{ fact.value }}{% endfor %}',
}

describe('title and body', () => {
  test.each(people)('are those of the templates: %s', async (type) => {
    const { preview, failures } = await showTemplated(type, own)
    const shown = JSON.stringify([preview.subject, preview.text, preview.html, preview.body])
    expect(failures).toEqual([])
    expect(shown).toMatch(/Case \d+ for example\[\.\]com/)
    expect(shown).toContain('Found in stealer_logs_live')
    expect(shown).toContain('Team: brand')
    expect(shown).not.toContain('Stealer log: user')
  })

  test.each(people)('leave severity, link and origin where they are: %s', async (type) => {
    const { preview } = await showTemplated(type, { title: 'x', body: 'y' })
    const shown = JSON.stringify([preview.subject, preview.text, preview.body])
    expect(shown).toMatch(/high|error/i)
    expect(shown).toContain('https://app.example.com/')
    expect(shown).toContain('0123456789abcdef')
  })

  test('a title says TEST once, whether or not the template quotes the built-in one', async () => {
    for (const title of ['x', '{{ title }}']) {
      const { preview } = await showTemplated('email', { title }, { isTest: true })
      expect(preview.subject?.match(/TEST/g)).toHaveLength(1)
    }
  })

  test('what Tocsin tells of itself keeps its look', async () => {
    const members = [aMember({ feed: ownFeed, event: aThreatEvent({ type: 'notice' }) })]
    const { preview } = await showTemplated('slack', own, { members })
    expect(JSON.stringify(preview)).not.toContain('Case')
  })

  test('a value is one line, and only the template begins another', async () => {
    const members = [aMember({ event: aThreatEvent({ source: 'a\nOpen event: b' }) })]
    const { preview } = await showTemplated('email', { body: 'from {{ source }}' }, { members })
    expect(preview.text).toContain('from a Open event: b')
  })
})

test.each(people)('no link comes of words of a feed and of the template: %s', async (type) => {
  const joined = '{% assign part = source | split: "." %}https://{{ part[0] }}.{{ part[1] }}/x'
  const members = [aMember({ event: aThreatEvent({ source: 'evil.example' }) })]
  const { preview } = await showTemplated(type, { title: joined, body: joined }, { members })
  const shown = JSON.stringify([preview.subject, preview.text, preview.html, preview.body])
  expect(shown).toContain('hxxps://evil[.]example/x')
  expect(shown).not.toMatch(/https:\/\/evil|evil\.example/)
})

test('words that a template does not give are the built-in ones', async () => {
  for (const type of people) {
    const usual = await showTemplated(type, {})
    const empty = { title: '{{ raised_from }}', body: '{% if test %}x{% endif %}' }
    expect(await showTemplated(type, empty)).toMatchObject({ preview: usual.preview, failures: [] })
  }
})

test('lines that a message has no room for are counted', async () => {
  const { preview } = await showTemplated('email', { body: 'a line\n'.repeat(40) })
  expect(preview.text.match(/a line/g)).toHaveLength(24)
  expect(preview.text).toContain('… and 16 more lines')
})

test('times stand in the zone of the sink', async () => {
  const title = 'at {{ created_at | date: "%H:%M" }}'
  const event = aThreatEvent({ createdAtMs: Date.UTC(2026, 0, 1, 23, 30) })
  const content = { members: [aMember({ event })] }
  const local = await showTemplated('email', { title }, content, { more: 'time_zone: Asia/Tokyo,' })
  expect(local.preview.subject).toContain('at 08:30')
  expect((await showTemplated('email', { title }, content)).preview.subject).toContain('at 23:30')
})

const boom = [aMember({ event: aThreatEvent({ source: 'boom', tags: ['x'.repeat(500)] }) })]

/** Each for the events of one source alone, so that the samples of the configuration pass. */
const failing: [name: string, template: string][] = [
  ['asks for the time', '{{ "now" | date: "%s" }}'],
  ['names a zone that does not exist', '{{ fetched_at | date: "%s", tags[0] }}'],
  ['makes a list without end', '{% for i in (1..100000000) %}x{% endfor %}'],
  ['writes without end', '{% for i in (1..300) %}{{ tags[0] }}{% endfor %}'],
]

describe('a template that fails', () => {
  test.each(failing)('costs its words and not the message: it %s', async (_name, content) => {
    const title = `{% if source == "boom" %}${content}{% endif %}own title`
    for (const type of people) {
      const usual = await showTemplated(type, {}, { members: boom })
      const { preview, failures } = await showTemplated(type, { title }, { members: boom })
      expect(preview).toEqual(usual.preview)
      const problem = expect.stringMatching(
        /^it writes too much$|^(?:it|the) [a-z ]+ \(line 1, column \d+ of the template\)$/,
      )
      expect(failures).toEqual([{ sink: 'soc', template: 'title', problem }])
    }
  })

  test('leaves the other template at work', async () => {
    const title = '{% if source == "boom" %}{{ "now" | date: "%s" }}{% endif %}'
    const { preview, failures } = await showTemplated(
      'slack',
      { title, body: 'mine' },
      { members: boom },
    )
    expect(failures.map(({ template }) => template)).toEqual(['title'])
    expect(preview.text).toContain('mine')
  })

  test('a body that is no JSON for one event gives the built-in one, and quotes nothing', async () => {
    const webhook_body =
      '{"tag": {% if source == "boom" %}{{ title }} {{ uid }}{% else %}1{% endif %}}'
    const { preview, failures } = await showTemplated(
      'webhook',
      { webhook_body },
      { members: boom },
    )
    expect(preview.body).toMatchObject({ type: 'tocsin.event.v1' })
    expect(failures).toEqual([
      { sink: 'soc', template: 'webhook_body', problem: 'it gives no JSON' },
    ])
  })
})

test('the body of a webhook has values as JSON, with or without the filter', async () => {
  const webhook_body =
    '{"a": {{ title }}, "b": {{ tags | json }}, "c": {{ notes }}, "d": {{ link }}}'
  const event = aThreatEvent({ tags: ['x", "y": "'], notes: null })
  const { preview } = await showTemplated(
    'webhook',
    { webhook_body },
    { members: [aMember({ event })] },
  )
  expect(preview.body).toEqual({
    a: expect.stringContaining('Stealer log'),
    b: ['x", "y": "'],
    c: null,
    d: expect.stringContaining('https://app.example.com/'),
  })
})

test('a batch of an earlier configuration is split, since a template is of one event', async () => {
  const members = [aMember(), aMember({ id: 'item2' })]
  await expect(showTemplated('webhook', { webhook_body: '{}' }, { members })).rejects.toMatchObject(
    {
      reason: 'invalid',
    },
  )
})

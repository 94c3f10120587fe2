import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { rmSync } from 'node:fs'
import { ConfigError } from '../../../../src/config/config.ts'
import { ownFeed } from '../../../../src/event.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import {
  parseTemplated,
  showTemplated,
  type SinkType,
  type Templates,
} from '../../../support/templated-sinks.ts'

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

describe('a template that fails', () => {
  const failing: [name: string, template: string][] = [
    ['gives an empty title', '{{ nothing }}'],
    ['asks for the time', '{{ "now" | date: "%s" }}'],
    ['uses a filter of dates without end', '{{ created_at | date: "%99999999d" }}'],
  ]
  test.each(failing)('costs its words and not the message: it %s', async (_name, title) => {
    for (const type of people) {
      const usual = await showTemplated(type, {})
      const { preview, failures } = await showTemplated(type, { title })
      expect(preview).toEqual(usual.preview)
      expect(failures).toEqual([{ sink: 'soc', template: 'title', problem: expect.any(String) }])
    }
  })

  test('leaves the other template at work', async () => {
    const { preview, failures } = await showTemplated('slack', { title: '{{ x }}', body: 'mine' })
    expect(failures.map(({ template }) => template)).toEqual(['title'])
    expect(preview.text).toContain('mine')
  })

  test('a body that is no JSON for one event gives the built-in one, and quotes nothing', async () => {
    const webhook_body = '{"tag": {% if tags.size < 2 %}{{ tags[0] }}{% endif %}}'
    const event = aThreatEvent({ tags: ['one', 'two'] })
    const { preview, failures } = await showTemplated(
      'webhook',
      { webhook_body },
      { members: [aMember({ event })] },
    )
    expect(preview.body).toMatchObject({ type: 'tocsin.event.v1' })
    expect(failures).toEqual([
      { sink: 'soc', template: 'webhook_body', problem: 'it gives no JSON' },
    ])
  })
})

test('the body of a webhook has values as JSON, with or without the filter', async () => {
  const webhook_body =
    '{"a": {{ title }}, "b": {{ tags | json }}, "c": {{ nothing }}, "d": {{ link }}}'
  const event = aThreatEvent({ tags: ['x", "y": "'] })
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

function mistakesOf(
  type: SinkType,
  templates: Templates,
  options: { more?: string; file?: string } = {},
): string[] {
  try {
    parseTemplated(type, templates, options)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.mistakes.map(
      ({ line, path, problem, remedy }) => `${line} ${path}: ${problem}; ${remedy}`,
    )
  }
}

describe('a mistake is found when the configuration is read', () => {
  const wrong: [name: string, type: SinkType, templates: Templates, said: RegExp][] = [
    [
      'an open block',
      'slack',
      { title: '{% if a %}' },
      /^5 sinks\.soc\.templates\.title: not a te.*line 1/,
    ],
    [
      'a tag of files',
      'slack',
      { body: 'a\n{% include "x" %}' },
      /body: no tag "include" \(line 2,/,
    ],
    ['a tag of files, too', 'email', { body: '{% render "x" %}' }, /body: no tag "render"/],
    ['a layout', 'teams', { body: '{% layout "x" %}' }, /body: no tag "layout"/],
    ['an unknown filter', 'slack', { title: '{{ a | shout }}' }, /title: no filter "shout"/],
    ['a raw value', 'webhook', { webhook_body: '{{ a | raw }}' }, /no filter "raw"/],
    ['too much', 'slack', { title: 'x'.repeat(16 * 1024 + 1) }, /title: longer than 16 KiB/],
    [
      'no JSON',
      'webhook',
      { webhook_body: '{"a": "{{ title }}"}' },
      /no JSON; write values without/,
    ],
    ['both ways', 'slack', { title: 'a', title_file: './b' }, /title: given beside title_file/],
    ['a missing file', 'slack', { title_file: './nowhere' }, /title_file: there is no such file/],
    ['a key of webhooks', 'slack', { webhook_body: '{}' }, /webhook_body: unknown key/],
    ['a key of people', 'webhook', { title: 'a' }, /title: unknown key/],
    [
      'a deep nest',
      'slack',
      { title: `{{ ${'a['.repeat(5000)}1${']'.repeat(5000)} }}` },
      /title: not a te/,
    ],
  ]
  test.each(wrong)('%s', (_name, type, templates, said) => {
    const mistakes = mistakesOf(type, templates)
    expect(mistakes).toHaveLength(1)
    expect(mistakes[0]).toMatch(said)
  })

  test('a template of one event beside batches', () => {
    const more = 'batch: { max: 5 },'
    const mistakes = mistakesOf('webhook', { webhook_body: '{}' }, { more })
    expect(mistakes).toEqual([expect.stringContaining('sinks.soc.batch: given beside templates')])
  })

  test('a value of a header over two lines, without quoting it', () => {
    const more = 'authorization: "Splunk hidden\\nX-Other: 1",'
    const mistakes = mistakesOf('webhook', { webhook_body: '{}' }, { more })
    expect(mistakes).toEqual([
      expect.stringContaining('sinks.soc.authorization: no value of a head'),
    ])
    expect(mistakes.join()).not.toContain('hidden')
  })
})

test('a file is found beside the configuration, and watched with it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-templates-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'title.liquid'), 'Mine: {{ uid }}')
  const file = join(folder, 'tocsin.yaml')
  const { config, files } = parseTemplated('slack', { title_file: 'title.liquid' }, { file })
  expect(config.sinks[0]).toMatchObject({ templates: { title: 'Mine: {{ uid }}' } })
  expect(files).toContain(join(folder, 'title.liquid'))
})

import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createEventRenderer, type TemplateFailure } from '../../../../src/sinks/templates.ts'
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

const boom = [aMember({ event: aThreatEvent({ source: 'boom', tags: ['x'.repeat(500)] }) })]
const many = 'for i in (1..300)'

/** Each for the events of one source alone, so that the samples of the configuration pass. */
const failing: [name: string, template: string][] = [
  ['asks for the time', '{{ "now" | date: "%s" }}'],
  [
    'uses a filter of dates without end',
    '{% assign f = "%9" | append: "9999999d" %}{{ fetched_at | date: f }}',
  ],
  ['names a zone that does not exist', '{{ fetched_at | date: "%s", tags[0] }}'],
  ['makes a list without end', '{% for i in (1..100000000) %}x{% endfor %}'],
  [
    'loops without end',
    `{% ${many} %}{% ${many} %}{% if i == 0 %}x{% endif %}{% endfor %}{% endfor %}`,
  ],
  [
    'doubles a text',
    `{% assign s = tags[0] %}{% ${many} %}{% assign s = s | append: s %}{% endfor %}`,
  ],
  ['writes without end', `{% ${many} %}{{ tags[0] }}{% endfor %}`],
  [
    'replaces without end',
    `{% assign s = tags[0] | replace: "x", tags[0] | replace: "x", tags[0] %}`,
  ],
]

/** Time of the processor passes no more: what ends now is ended by counts. */
function standStill(): void {
  const spy = vi.spyOn(process, 'threadCpuUsage').mockReturnValue({ user: 0, system: 0 })
  onTestFinished(() => spy.mockRestore())
}

describe('a template that fails', () => {
  test.each(failing)('costs its words and not the message: it %s', async (_name, content) => {
    const title = `{% if source == "boom" %}${content}{% endif %}own title`
    for (const type of people) {
      const usual = await showTemplated(type, {}, { members: boom })
      const { preview, failures } = await showTemplated(type, { title }, { members: boom })
      expect(preview).toEqual(usual.preview)
      const problem = expect.stringMatching(
        /^(?:it|the) [a-z ]+ \(line 1, column \d+ of the template\)$/,
      )
      expect(failures).toEqual([{ sink: 'soc', template: 'title', problem }])
    }
  })

  test.each(failing)(
    'ends by counts, at the same place each time: it %s',
    async (_name, content) => {
      standStill()
      const title = `{% if source == "boom" %}${content}{% endif %}`
      const shown = await Promise.all(
        [1, 2, 3].map(() => showTemplated('pagerduty', { title }, { members: boom })),
      )
      expect(new Set(shown.map(({ failures }) => failures[0]?.problem)).size).toBe(1)
    },
  )

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

  const heavy = `{% for i in (1..9000) %}{% if ${'source contains "zy" or '.repeat(300)} test %}{% endif %}{% endfor %}`
  const light = '{{ "now" | date: "%s" }}'

  /** Of events of the source `heavy` or `light` it fails, at much or little cost; `usual`: it does not. */
  function failingTitle() {
    const clock = { nowMs: 0, monotonic: () => clock.nowMs }
    const failures: TemplateFailure[] = []
    const title = `{% if source == "heavy" %}${heavy}{% elsif source == "light" %}${light}{% endif %}Own`
    const parts = { clock, onTemplateFailure: (told: TemplateFailure) => void failures.push(told) }
    const render = createEventRenderer({ name: 'soc', templates: { title } }, parts)
    const destination = { id: 'soc', label: 'soc' }
    const common = { id: 'd1', destination, attempt: 1, mayBeRepeat: false }
    const renderTitle = (source: string): string =>
      render({ ...common, members: [aMember({ event: aThreatEvent({ source }) })] }).title
    return { clock, failures, renderTitle }
  }

  test('a template that costs much rests for a minute, so that it delays nothing', () => {
    const { clock, failures, renderTitle } = failingTitle()
    const asksOfTheTime = vi.spyOn(process, 'threadCpuUsage') // by whatever is rendered
    onTestFinished(() => asksOfTheTime.mockRestore())
    for (let count = 0; count < 3; count += 1) renderTitle('heavy')
    expect(asksOfTheTime).toHaveBeenCalled()
    asksOfTheTime.mockClear()
    for (let count = 0; count < 20; count += 1) expect(renderTitle('usual')).not.toBe('Own')
    expect(asksOfTheTime).not.toHaveBeenCalled()
    expect(failures).toHaveLength(23)
    for (const { problem } of failures) expect(problem).toContain('it takes too long')
    clock.nowMs += 60_000
    expect(renderTitle('usual')).toBe('Own')
  })

  test.each([
    ['one that succeeds', 'usual'],
    ['one that fails at little cost', 'light'],
  ])('a template rests only after costly failures in a row: %s is between them', (_what, other) => {
    const { renderTitle } = failingTitle()
    for (const source of ['heavy', 'heavy', other, 'heavy', 'heavy', other]) renderTitle(source)
    expect(renderTitle('usual')).toBe('Own')
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

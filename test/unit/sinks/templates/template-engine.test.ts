import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  cpuMs,
  parseTemplate,
  TemplateError,
  templateFilters,
  templateProblem,
  templateTags,
} from '../../../../src/sinks/template-engine.ts'
import { runs } from '../../../support/runs.ts'

function renderLines(text: string, values: object = {}): string {
  return parseTemplate(text, { kind: 'lines' }).render(values)
}

test('a template ends after ten thousand steps, however quick they are', () => {
  expect(renderLines('{% for i in (1..4000) %}x{% endfor %}')).toHaveLength(4000)
  const tooMany = '{% for i in (1..5500) %}x{% endfor %}'
  expect(() => renderLines(tooMany)).toThrow('it takes too long')
})

test('a template of few steps ends after some time of the processor', () => {
  const values = { text: 'ab'.repeat(9000) }
  const heavy = `{% if ${'text contains "zy" or '.repeat(300)} text == 1 %}{% endif %}`
  const startedMs = cpuMs()
  expect(() => renderLines(`{% for i in (1..3000) %}${heavy}{% endfor %}`, values)).toThrow(
    'it takes too long',
  )
  expect(cpuMs() - startedMs).toBeLessThan(400)
})

test('a place is said, and no value', () => {
  const template = 'a\n b {{ text | date: "%s", text }}'
  const values = { text: '2026-11-21T00:00:00Z hidden' }
  expect(() => renderLines(`${template}{{ "2026-11-21" | date: "%s", text }}`, values)).toThrow(
    /^it cannot be rendered \(line 2, column \d+ of the template\)$/,
  )
})

/** What a template may name reaches nothing of the process, of a prototype or of a file. */
test.each([
  '{{ text.constructor }}',
  '{{ list.constructor.constructor }}',
  '{{ __proto__ }}{{ entry.__proto__ }}{{ entry.toString }}{{ list.map }}',
  '{{ globalThis }}{{ process }}{{ require }}',
])('nothing stands behind a value: %s', (template) => {
  expect(renderLines(template, { text: 'a', list: [], entry: {} })).toBe('')
})

const files = 'include render layout block liquid capture increment tablerow cycle echo'.split(' ')
test.each(files)('there is no tag %s', (tag) => {
  expect(templateProblem(`{% ${tag} "/etc/passwd" %}`, 'lines', [])?.problem).toContain(
    `no tag "${tag}"`,
  )
})

test('every tag and filter that is listed exists', () => {
  for (const tag of templateTags) {
    const { problem = '' } = templateProblem(`{% ${tag} %}`, 'lines', []) ?? {}
    expect(problem).not.toContain('no tag')
  }
  for (const filter of templateFilters) {
    expect(templateProblem(`{{ "a" | ${filter}: 1, 2 }}`, 'lines', [])).toBeUndefined()
  }
})

const pieces = [
  ['{{ text', ' }}', '{%- ', ' -%}', '{{ list', '.first', '[0]', ' | ', ': ', ', ', '"'],
  ['{% if text %}', '{% else %}', '{% endif %}', '{% for i in list %}', '{% endfor %}'],
  ['{% assign s = text', '{% raw %}', '{% endraw %}', '{% case text %}', '{% when "a" %}'],
  ['{% comment %}', '{% endcomment %}', '(1..99)', 'date: "%c"', '{% break %}', '{% # x %}'],
  templateFilters.map((filter) => ` | ${filter}`),
].flat()
const piece = fc.oneof(
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 6 }) },
  { weight: 4, arbitrary: fc.constantFrom(...pieces) },
)

/** A defect of the library would throw anything else. */
function endOf(template: string, text: string): 'refused' | 'text' | 'failed' {
  if (templateProblem(template, 'json', ['text', 'list', 'i', 's']) !== undefined) return 'refused'
  try {
    parseTemplate(template, { kind: 'json' }).render({ text, list: [text, 1, null] })
    return 'text'
  } catch (error) {
    if (error instanceof TemplateError) return 'failed'
    throw error
  }
}

test('any template is refused, fails as a template, or gives text', () => {
  const ends = new Set<string>()
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), fc.string({ unit: 'binary' }), (parts, text) => {
      ends.add(endOf(parts.join(''), text))
    }),
    { numRuns: runs({ short: 500, long: 10_000 }) },
  )
  expect([...ends]).toEqual(expect.arrayContaining(['refused', 'text']))
})

test('a value in JSON is JSON, whatever stands in it', () => {
  const template = parseTemplate(
    '{"a": {{ text }}, "b": [{{ list }}, {{ list[0] | append: "\\"" }}]}',
    {
      kind: 'json',
    },
  )
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.jsonValue(), (text, list) => {
      const parsed: unknown = JSON.parse(template.render({ text, list }))
      expect(parsed).toMatchObject({ a: text })
      expect(Object.keys(parsed as object)).toEqual(['a', 'b'])
    }),
  )
})

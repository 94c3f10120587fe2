import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import {
  parseTemplate,
  TemplateError,
  templateFilters,
  templateLimits,
  templateProblem,
  templateTags,
} from '../../../../src/sinks/templates/template-engine.ts'
import { allHostileWords } from '../../../security/hostile-words.ts'
import { runs } from '../../../support/runs.ts'

function renderLines(text: string, values: object = {}): string {
  return parseTemplate(text, { kind: 'lines' }).render(values)
}

test('a template that takes too long ends between two of its steps', () => {
  let looks = 0
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => (looks += 1) * 10)
  onTestFinished(() => spy.mockRestore())
  expect(() => renderLines('{% for i in (1..3000) %}{% if i %}{% endif %}{% endfor %}')).toThrow(
    'it takes too long (line 1',
  )
  expect(looks).toBe(templateLimits.maxMs / 10 + 2)
})

const large = { quotes: '"'.repeat(100), dots: 'a.'.repeat(9000) }

test.each([
  ['escapes doubled', `{{ quotes ${'| json '.repeat(26)}| size }}`],
  ['a text emptied again and again', `{{ dots ${'| remove: "a." | default: dots'.repeat(300)} }}`],
  ['a date filled to a width', '{{ 0 | date: "%99999999d" }}'],
  ['a long list', '{% for i in (1..300000) %}x{% endfor %}'],
])('what would take all of the memory ends: %s', (_name, template) => {
  expect(() => renderLines(template, large)).toThrow('it needs too much memory (line 1')
})

test('a template writes no more than its limit', () => {
  const long = 'x'.repeat(1000)
  expect(() => renderLines(`{% for i in (1..100) %}${long}{% endfor %}`)).toThrow(
    'it writes too much',
  )
})

test.each([
  '{% for i in (9007199254740992..9007199254740994) %}{% endfor %}',
  '{{ (1..text) }}',
  '{% for i in (1..2.5) %}{% endfor %}',
  '{{ text[(text..2)] }}',
])('a range that may have no end is refused: %s', (template) => {
  expect(templateProblem(template, 'lines', ['text'])).toMatchObject({
    problem: 'a range without whole numbers',
    remedy: expect.stringContaining('(1..5)'),
  })
})

test('a range of numbers and dots in a text are none', () => {
  const template = '... {{ text | truncate: 9, ".." }}{% for i in ( 1 .. 5 ) %}{{ i }}{% endfor %}'
  expect(templateProblem(template, 'lines', ['text'])).toBeUndefined()
})

test('entries are chosen by a key of their own', () => {
  const facts = [{ label: 'a', value: 1 }, { label: 'b' }, null, 'c']
  const shown = (call: string): string =>
    renderLines(`{{ facts | where: ${call} | map: "label" }}`, { facts })
  expect(shown('"label", "b"')).toBe('b')
  expect(shown('"value"')).toBe('a')
  expect(shown('"constructor"')).toBe('')
})

/** undefined: it failed as a template. A defect of the library would throw anything else. */
function renderOrFail(render: () => string): string | undefined {
  try {
    return render()
  } catch (error) {
    if (error instanceof TemplateError) return undefined
    throw error
  }
}

test('a place is said, and no value', () => {
  const template = 'a\n b {{ 0 | date: "%s", text }}'
  expect(() => renderLines(template, { text: 'hidden' })).toThrow(
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

test('no tag reads a file, writes a variable of its own or prints', () => {
  for (const tag of 'include render layout block liquid capture increment tablerow cycle echo'.split(
    ' ',
  ))
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

const values = {
  text: `"\\%\u0000${allHostileWords}`.repeat(20),
  list: ['a.b', { size: 1e308, length: 7 }, null, [['x'], '9007199254740993']],
  entry: { toString: 'x', valueOf: 1, length: '9', first: [{ next: 1 }], throw: true },
  n: 2 ** 53,
}
const operands = [
  'text list entry n s i list[3] entry.first nil empty -1 1000000 0.5 true (1..70)',
  '"" "a" "." "%c" "entry.first[0].x"',
].flatMap((words) => words.split(' '))
const operand = fc.constantFrom(...operands)
const filtered = fc
  .tuple(
    operand,
    fc.array(fc.tuple(fc.constantFrom(...templateFilters), fc.array(operand, { maxLength: 3 })), {
      maxLength: 12,
    }),
  )
  .map(([first, filters]) =>
    [
      first,
      ...filters.map(([name, given]) =>
        given.length === 0 ? name : `${name}: ${given.join(', ')}`,
      ),
    ].join(' | '),
  )
const condition = fc
  .tuple(operand, fc.constantFrom('==', '!=', '<', '>=', 'contains', 'and', 'or'), operand)
  .map((parts) => parts.join(' '))

/** Templates that parse, so that what they do is what is tried. */
const { block } = fc.letrec<{ block: string; body: string }>((tie) => ({
  body: fc.array(tie('block'), { maxLength: 4 }).map((parts) => parts.join('')),
  block: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    filtered.map((value) => `{{ ${value} }}`),
    filtered.map((value) => `{% assign s = ${value} %}`),
    fc.tuple(operand, tie('body')).map(([of, body]) => `{% for i in ${of} %}${body}{% endfor %}`),
    fc
      .tuple(condition, tie('body'))
      .map(([of, body]) => `{% if ${of} %}${body}{% else %}{% break %}{% endif %}`),
    fc
      .tuple(condition, tie('body'))
      .map(([of, body]) => `{% unless ${of} %}${body}{% continue %}{% endunless %}`),
    fc
      .tuple(operand, operand, tie('body'))
      .map(([of, when, body]) => `{% case ${of} %}{% when ${when}, list %}${body}{% endcase %}`),
    tie('body').map(
      (body) => `{% comment %}${body}{% endcomment %}{% # x %}{% raw %}{{ x }}{% endraw %}`,
    ),
  ),
}))

test('any template of the tags and filters that there are ends, within its bounds', () => {
  const ends = { text: 0, failed: 0, refused: 0 }
  fc.assert(
    fc.property(
      fc.array(block, { minLength: 1, maxLength: 4 }),
      fc.constantFrom('lines' as const, 'json' as const),
      (blocks, kind) => {
        const template = blocks.join('')
        if (templateProblem(template, kind, [...Object.keys(values), 's', 'i']) !== undefined) {
          ends.refused += 1
          return
        }
        const written = renderOrFail(() => parseTemplate(template, { kind }).render(values))
        ends[written === undefined ? 'failed' : 'text'] += 1
        expect(written?.length ?? 0).toBeLessThanOrEqual(templateLimits.maxOutput)
      },
    ),
    { numRuns: runs({ short: 400, long: 10_000 }) },
  )
  expect(ends.text).toBeGreaterThan(ends.refused)
  expect(ends.failed).toBeGreaterThan(0)
})

test('what has no value is null in JSON, and nothing in a line', () => {
  const template =
    '{"a": {{ nil }}, "b": {{ gone }}, "c": {{ text | default: nil }}, "d": {{ null | json }}, "e": {{ list.first.x }}, "f": {{ empty }}}'
  const json = parseTemplate(template, { kind: 'json' }).render({ text: '', list: [] })
  expect(JSON.parse(json)).toEqual({ a: null, b: null, c: null, d: null, e: null, f: '' })
  expect(renderLines('[{{ nil }}{{ empty }}{{ gone | default: nil }}]')).toBe('[]')
})

test('JSON in a line is sanitized and cut as every value is', () => {
  const written = renderLines('{{ text | json }}', { text: `\u202ea${'b'.repeat(5_000)}` })
  expect(written).toMatch(/^"ab+…$/)
  expect(written).toHaveLength(templateLimits.maxValue)
})

test('a date is shown in the zone of the sink, or in that which is given', () => {
  const template = parseTemplate(
    '{{ at | date: "%Y-%m-%d %H:%M %z" }} {{ at | date: "%H", "UTC" }} {{ no | date: "%H" }}',
    { kind: 'lines', timeZone: 'Asia/Tokyo' },
  )
  expect(template.render({ at: '2026-11-21T07:59:30.000Z', no: 'none' })).toBe(
    '2026-11-21 16:59 +0900 07 none',
  )
})

test.each(['"now"', '"today"'])('the time of the rendering is not known: %s', (value) => {
  expect(() => renderLines(`{{ ${value} | date: "%s" }}`)).toThrow('the present time is not known')
})

test.each(['toString', 'valueOf', 'constructor', '__proto__', 'toJSON', 'then'])(
  'a key %s of a feed takes no look from a message',
  (key) => {
    const detail = JSON.parse(`{"${key}":1}`) as unknown
    const template = parseTemplate('{{ detail | append: "." }} {{ all | join: "," | upcase }}', {
      kind: 'lines',
    })
    const said = `{"${key}":1}`
    expect(template.render({ detail, all: [detail, 'x'] })).toBe(
      `${said}. ${`${said},x`.toUpperCase()}`,
    )
  },
)

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

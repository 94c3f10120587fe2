import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import {
  createMeter,
  type Meter,
  TemplateError,
  templateLimits,
} from '../../../../src/sinks/template-bounds.ts'
import {
  parseTemplate,
  templateFilters,
  templateProblem,
} from '../../../../src/sinks/template-engine.ts'
import { allHostileWords } from '../../../security/hostile-words.ts'
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
  let looks = 0
  const spy = vi
    .spyOn(process, 'threadCpuUsage')
    .mockImplementation(() => ({ user: (looks += 1) * 10_000, system: 0 }))
  onTestFinished(() => spy.mockRestore())
  expect(() => renderLines(`{% for i in (1..3000) %}${heavy}{% endfor %}`, values)).toThrow(
    'it takes too long',
  )
  // of ten milliseconds each: the first when it starts
  expect(looks).toBe(1 + templateLimits.maxCpuMs / 10 + 1)
})

/** Each took seconds, or all of the memory, as far as the library bounds it. */
const costly: [name: string, template: string, said: string][] = [
  ['escapes doubled', `{{ quotes ${'| json '.repeat(26)}| size }}`, 'too much memory'],
  ['percents doubled', `{{ percents ${'| url_encode '.repeat(1000)}| size }}`, 'too much memory'],
  ['a path for each entry', '{{ (1..9000) | where: dots | size }}', 'too long an argument'],
  ['a path in a map', '{{ (1..9000) | map: dots | size }}', 'too long an argument'],
  ['a path in a sort', '{{ (1..9000) | sort: dots | size }}', 'too long an argument'],
  [
    'a shorter path for each entry',
    `{% assign path = "${'a.'.repeat(90)}a" %}{{ (1..100000) | where: path | size }}`,
    'takes too long',
  ],
  ['a format of months', '{{ "2026-11-21" | date: months }}', 'too long an argument'],
  ['dates in one step', `{{ 1 ${'| date: "%s" '.repeat(900)} }}`, 'takes too long'],
  [
    'a list looked through in one step',
    `{% assign list = (1..7000) | compact %}{% if ${'list contains 0 or '.repeat(800)} 1 %}{% endif %}`,
    'takes too long',
  ],
  [
    'lists compared in one step',
    `{% assign a = xs | append: "y" | split: "," %}{% assign b = xs | append: "z" | split: "," %}{% case a %}{% when ${'b, '.repeat(2000)}1 %}{% endcase %}`,
    'takes too long',
  ],
  ['a long text looked for', '{% if dots contains months %}{% endif %}', 'too long an argument'],
  ['a long text replaced', '{{ dots | replace: months, "" | size }}', 'too long an argument'],
  [
    'a text emptied again and again',
    `{{ percents ${'| replace: "%", "" | default: percents '.repeat(350)} }}`,
    'takes too long',
  ],
  [
    'the end of a text',
    `{{ dots ${'| slice: -1 | default: dots | append: dots'.repeat(300)} }}`,
    'memory',
  ],
  [
    'a filter that parses a range',
    '{{ list | where: "a[(9007199254740992..9007199254740994)]" }}',
    'be rendered',
  ],
]

const large = {
  quotes: '"'.repeat(100),
  percents: '%'.repeat(20_000),
  dots: 'a.'.repeat(9000),
  months: '%B'.repeat(9000),
  xs: 'x,'.repeat(5000),
  list: [{ a: [1] }],
}

/** What each part of a rendering cost. */
function aMeter(): { meter: Meter; sizes: number[]; steps: () => number } {
  const own = createMeter()
  const sizes: number[] = []
  let steps = 0
  return {
    sizes,
    steps: () => steps,
    meter: {
      start: own.start,
      step() {
        steps += 1
        own.step()
      },
      work(size) {
        sizes.push(size)
        own.work(size)
      },
    },
  }
}

test.each(costly)('what would cost much ends by counted work: %s', (_name, template, said) => {
  const { meter, sizes } = aMeter()
  const parsed = parseTemplate(template, { kind: 'lines', meter })
  expect(() => parsed.render(large)).toThrow(said)
  const before = sizes.slice(0, -1).reduce((sum, size) => sum + size, 0)
  expect(before).toBeLessThanOrEqual(templateLimits.maxWork)
})

test('a date counts by the names of zones in it, which cost the most', () => {
  const { meter, sizes } = aMeter()
  parseTemplate(`{{ 0 | date: "${'%Z'.repeat(100)}" }}`, { kind: 'lines', meter }).render({})
  expect(sizes[0]).toBe(5_000 + 100 * 20_000)
})

test.each([
  '{% for i in (9007199254740992..9007199254740994) %}{% endfor %}',
  '{{ (1..text) }}',
  '{% for i in (1..2.5) %}{% endfor %}',
  '{{ text[(text..2)] }}',
])('a range that may have no end is refused: %s', (template) => {
  expect(templateProblem(template, 'lines', ['text'])).toMatchObject({
    problem: expect.stringMatching(/^a range without whole numbers \(line 1, column \d+ of/),
    remedy: expect.stringContaining('(1..5)'),
  })
})

const texts = ['"\\', '%€😀', '\u0000\u202E', 'ß ŉ.', 'a.b:c|', '42', ''].map((text) =>
  text.repeat(40),
)
const calls: Readonly<Record<string, string>> = {
  append: 'append: text',
  prepend: 'prepend: text',
  date: 'date: "%c %Z"',
  default: 'default: text',
  divided_by: 'divided_by: 7',
  join: 'join: text',
  map: 'map: "size"',
  minus: 'minus: 1',
  modulo: 'modulo: 7',
  plus: 'plus: 1',
  remove: 'remove: "z"',
  replace: 'replace: "", "xx"',
  replace_first: 'replace_first: "a", text',
  slice: 'slice: -9, 9',
  split: 'split: ""',
  times: 'times: 99',
  truncate: 'truncate: 9000',
  where: 'where: "size"',
}

/** undefined: it failed as a template. A defect of the library would throw anything else. */
function renderOrFail(render: () => string): string | undefined {
  try {
    return render()
  } catch (error) {
    if (error instanceof TemplateError) return undefined
    throw error
  }
}

test.each(templateFilters)('as often as fits a template, each filter is counted: %s', (filter) => {
  const call = ` | ${calls[filter] ?? filter}`
  const times = Math.floor((templateLimits.maxTemplateBytes - 20) / call.length)
  for (const text of texts) {
    const { meter, sizes } = aMeter()
    const parsed = parseTemplate(`{{ text${call.repeat(times)} }}`, { kind: 'lines', meter })
    const written = renderOrFail(() => parsed.render({ text }))
    expect(written?.length ?? 0).toBeLessThanOrEqual(templateLimits.maxValue)
    // The value, each filter and the escape.
    expect(sizes.length).toBeGreaterThanOrEqual(written === undefined ? 1 : times + 2)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(templateLimits.maxSize)
  }
})

test('a place is said, and no value', () => {
  const template = 'a\n b {{ text | date: "%s", text }}'
  const values = { text: '2026-11-21T00:00:00Z hidden' }
  expect(() => renderLines(`${template}{{ "2026-11-21" | date: "%s", text }}`, values)).toThrow(
    /^it names no time zone \(line 2, column \d+ of the template\)$/,
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

function endOf(template: string, text: string): 'refused' | 'text' | 'failed' {
  if (templateProblem(template, 'json', ['text', 'list', 'i', 's']) !== undefined) return 'refused'
  const values = { text, list: [text, 1, null] }
  const written = renderOrFail(() => parseTemplate(template, { kind: 'json' }).render(values))
  return written === undefined ? 'failed' : 'text'
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
        const { meter, sizes, steps } = aMeter()
        const written = renderOrFail(() => parseTemplate(template, { kind, meter }).render(values))
        ends[written === undefined ? 'failed' : 'text'] += 1
        expect(written?.length ?? 0).toBeLessThanOrEqual(templateLimits.maxOutput)
        expect(sizes.slice(0, -1).reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(
          templateLimits.maxWork,
        )
        expect(steps()).toBeLessThanOrEqual(templateLimits.maxSteps + 1)
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

test('a date is read as UTC, and what is none stays as it is', () => {
  const shown = (value: unknown): string => renderLines('{{ value | date: "%F %T" }}', { value })
  expect(shown('2026-11-21T07:59:30.000Z')).toBe('2026-11-21 07:59:30')
  expect(shown('2026-11-21T07:59:30+02:00')).toBe('2026-11-21 05:59:30')
  for (const value of ['2026-11-21', '2026-11-21 00:00', 1795219200, '1795219200']) {
    expect(shown(value)).toBe('2026-11-21 00:00:00')
  }
  expect(shown('joe 5')).toBe('joe 5')
  expect(shown('2026-99-99')).toBe('2026-99-99')
  expect(shown(null)).toBe('')
})

test.each([
  '{{ text | date: "%H:%Q" }}',
  'a\n{% if text %}{% for i in list %}{% assign s = i | upcase | date: "%Q" %}{% endfor %}{% endif %}',
])('a conversion that dates do not have is refused, in any branch: %s', (template) => {
  expect(templateProblem(template, 'lines', ['text', 'list'])).toMatchObject({
    problem: expect.stringMatching(/^unknown conversion %Q of a date \(line \d, column \d+ of/),
    remedy: expect.stringMatching(/^conversions here: %a .*%F/),
  })
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

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ConfigError } from '../../../../src/config/config.ts'
import { parseTemplated, type SinkType, type Templates } from '../../../support/templated-sinks.ts'

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
    ['an unknown filter', 'slack', { title: '{{ a | shout }}' }, /title: no filter "shout"/],
    [
      'a misspelled variable',
      'slack',
      { body: 'a\n{% if titel %}b{% endif %}' },
      /body: no variable "titel" \(line 2, column 7 .*did you mean "title"\?/,
    ],
    [
      'a variable that is no name',
      'slack',
      { body: '{{ ["\u0007"] }}' },
      /body: a variable that does/,
    ],
    [
      'a range of variables',
      'slack',
      { body: '{% for i in (1..facts.size) %}x{% endfor %}' },
      /body: a range without whole numbers; .*such as \(1\.\.5\)/,
    ],
    [
      'the time',
      'slack',
      { title: '{{ "now" | date: "%s" }}' },
      /for an event: the present time is/,
    ],
    ['an empty one', 'slack', { title: '' }, /title: has no value/],
    ['no text', 'slack', { title: ['a'] } as never, /title: .*text/],
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
})

test('a file is found beside the configuration, and is one of its files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-templates-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'title.liquid'), 'Mine: {{ uid }}')
  const file = join(folder, 'tocsin.yaml')
  const { config, files } = parseTemplated('slack', { title_file: 'title.liquid' }, { file })
  expect(config.sinks[0]).toMatchObject({ templates: { title: 'Mine: {{ uid }}' } })
  expect([...files.keys()]).toContain(join(folder, 'title.liquid'))
})

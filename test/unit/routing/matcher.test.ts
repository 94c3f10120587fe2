import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/load.ts'
import { severities } from '../../../src/event.ts'
import { MatcherError, parseMatcher } from '../../../src/routing/matcher.ts'
import { leastCpuMs } from '../../support/cpu-time.ts'

function matches(text: string, ...values: string[]): boolean {
  return parseMatcher(text).matches(values)
}

/** What parsing throws; undefined where the text is accepted. */
function failureOf(text: string): unknown {
  try {
    parseMatcher(text).matches(['x'])
    return undefined
  } catch (error) {
    return error
  }
}

function mistakeIn(text: string): string {
  const failure = failureOf(text)
  expect(failure).toBeInstanceOf(MatcherError)
  return (failure as MatcherError).message
}

describe('the grammar', () => {
  test.each([
    ['severity>=high', 'severity', '>=', 'high'],
    ['  type = "paste"  ', 'type', '=', 'paste'],
    ['type="a b, c"', 'type', '=', 'a b, c'],
    ['tag=""', 'tag', '=', ''],
    ['team!=brand-2', 'team', '!=', 'brand-2'],
    ['type=~stealer.*|ransomleak', 'type', '=~', 'stealer.*|ransomleak'],
    ['type=~x{1,3}', 'type', '=~', 'x{1,3}'],
    ['tag!~"a=b"', 'tag', '!~', 'a=b'],
    ['tag=a=b', 'tag', '=', 'a=b'],
    ["tag=it's`", 'tag', '=', "it's`"],
    ['identifier="say \\"hi\\""', 'identifier', '=', 'say "hi"'],
    ['identifier=~"a\\.b\\\\\\d"', 'identifier', '=~', 'a\\.b\\\\d'],
    ['identifier=~a\\.b', 'identifier', '=~', 'a\\.b'],
    ['tag="a\\\nb"', 'tag', '=', 'a\\\nb'],
    ['tag="two\\nlines"', 'tag', '=', 'two\nlines'],
    ['source=été😀', 'source', '=', 'été😀'],
  ])('%s', (text, name, operator, value) => {
    expect(parseMatcher(text)).toMatchObject({ text: text.trim(), name, operator, value })
  })

  test('any value written in quotes is read back as it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (value) => {
        const quoted = value.replaceAll(/["\\]/g, String.raw`\$&`).replaceAll('\n', String.raw`\n`)
        expect(parseMatcher(`tag="${quoted}"`).value).toBe(value)
        expect(matches(`tag="${quoted}"`, 'other', value)).toBe(true)
      }),
    )
  })

  test('any text is a matcher or a MatcherError, never another failure', () => {
    const pieces = ['severity', 'tag', '=', '!', '~', '>', '<', '"', '\\', '(', ')', '*', '[', '?']
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc
        .array(fc.constantFrom(...pieces, ' ', 'high', ',', '{2}', '^', '$'))
        .map((p) => p.join('')),
      fc.string({ unit: 'binary' }).map((pattern) => `tag=~${pattern}`),
    )
    fc.assert(
      fc.property(text, (candidate) => {
        const failure = failureOf(candidate)
        expect(failure === undefined || failure instanceof MatcherError).toBe(true)
      }),
      { numRuns: 300 },
    )
  })
})

describe('mistakes say what is wrong and what to write', () => {
  test.each([
    [
      'severity>=hihg',
      'severity>=hihg: "hihg" is not a severity; one of info, low, medium, high, critical',
    ],
    ['type>=high', 'type>=high: ">=" compares severities only; for "type" use = != =~ or !~'],
    ['severty>=high', 'severty>=high: ">=" compares severities only; did you mean "severity"?'],
    ['tag<"b"', 'tag<"b": "<" compares severities only; for "tag" use = != =~ or !~'],
    ['severity==high', 'severity==high: "==" is not an operator; one of = != =~'],
    ['severity=>high', '"=>" is not an operator'],
    ['severity<>high', '"<>" is not an operator'],
    ['', 'not a matcher; write a name, an operator and a value, e.g. severity>=high'],
    ['severity', 'not a matcher'],
    ['=high', 'not a matcher'],
    ['{severity="high"}', 'not a matcher'],
    ['2nd="x"', 'not a matcher'],
    ['tag=', 'the value is missing; write tag="" for none'],
    ["type='paste'", 'wrong quotes; use double quotes'],
    ['type=`paste`', 'wrong quotes; use double quotes'],
    ['type=two words', 'a bare value has no spaces and no quotes; put the value in double quotes'],
    ['type=a"b', 'a bare value has no spaces and no quotes'],
    ['type=paste"', 'a bare value has no spaces and no quotes'],
    ['severity=high,critical', 'has no comma; write severity=~"high|critical" for any of several'],
    ['type="paste', 'the quote is not closed; end the value with a double quote'],
    ['type="paste\\"', 'the quote is not closed'],
    ['type="a", tag="b"', 'found , tag="b"; write one matcher per item'],
    ['type="a" b', 'nothing may follow the closing quote, found b'],
    ['tag=~"("', 'tag=~"(": not a valid pattern: missing closing ): `(`; write RE2 syntax'],
    ['tag=~"[z-a]"', 'invalid character class range: `z-a`'],
    ['tag!~"a(?=b)"', 'unsupported Perl syntax: `(?=`; write RE2 syntax, which has no look-around'],
    ['tag=~"(?<!a)b"', 'which has no look-around'],
    ['tag=~"(a)\\1"', 'invalid escape sequence: `\\1`; write RE2 syntax'],
    ['tag=~"a{1001}"', 'invalid repeat count'],
  ])('%s', (text, message) => {
    expect(mistakeIn(text)).toContain(message)
  })
})

describe('one value', () => {
  test.each([
    ['type="paste"', 'paste', true],
    ['type="paste"', 'pastes', false],
    ['type="paste"', 'Paste', false],
    ['type!="paste"', 'paste', false],
    ['type!="paste"', 'chat', true],
    ['type=~"past."', 'paste', true],
    ['type=~"past"', 'paste', false],
    ['type=~"aste"', 'paste', false],
    ['type=~"a|ab"', 'ab', true],
    ['type=~"a|b"', 'ab', false],
    ['type=~"(?i)PASTE"', 'paste', true],
    ['type=~".*"', 'two\nlines', true],
    ['type=~"^paste$"', 'paste', true],
    ['type!~"past."', 'paste', false],
    ['type!~"past"', 'paste', true],
  ])('%s against %j: %s', (text, value, expected) => {
    expect(matches(text, value)).toBe(expected)
  })
})

describe('several values, as identifiers and tags have', () => {
  test.each([
    ['tag="b"', ['a', 'b'], true],
    ['tag="c"', ['a', 'b'], false],
    ['tag!="b"', ['a', 'b'], false],
    ['tag!="c"', ['a', 'b'], true],
    ['tag=~"[bx]"', ['a', 'b'], true],
    ['tag=~"[xy]"', ['a', 'b'], false],
    ['tag!~"[bx]"', ['a', 'b'], false],
    ['tag!~"[xy]"', ['a', 'b'], true],
  ])('%s against %j: %s', (text, values, expected) => {
    expect(matches(text, ...values)).toBe(expected)
  })

  test('= and != are opposites, and so are =~ and !~, whatever the values', () => {
    const word = fc.constantFrom('', 'a', 'b', 'ab', '1')
    fc.assert(
      fc.property(fc.array(word), word, (values, value) => {
        expect(matches(`tag!="${value}"`, ...values)).toBe(!matches(`tag="${value}"`, ...values))
        expect(matches(`tag!~"${value}"`, ...values)).toBe(!matches(`tag=~"${value}"`, ...values))
      }),
    )
  })
})

describe('no value', () => {
  test.each([
    ['team=""', true],
    ['team!=""', false],
    ['team="brand"', false],
    ['team!="brand"', true],
    ['team=~".*"', true],
    ['team=~".+"', false],
    ['team!~".+"', true],
    ['severity>=critical', true],
  ])('counts as the empty text: %s holds: %s', (text, expected) => {
    expect(matches(text)).toBe(expected)
  })
})

describe('the order of severities', () => {
  test('every operator agrees with the ranks, for every pair', () => {
    for (const [bound, boundWord] of severities.entries()) {
      for (const [rank, word] of severities.entries()) {
        expect(matches(`severity>=${boundWord}`, word)).toBe(rank >= bound)
        expect(matches(`severity>${boundWord}`, word)).toBe(rank > bound)
        expect(matches(`severity<=${boundWord}`, word)).toBe(rank <= bound)
        expect(matches(`severity<${boundWord}`, word)).toBe(rank < bound)
      }
    }
  })

  test('an unknown severity counts as critical, and equals only itself', () => {
    expect(matches('severity>=critical', 'apocalyptic')).toBe(true)
    expect(matches('severity<critical', 'apocalyptic')).toBe(false)
    expect(matches('severity="critical"', 'apocalyptic')).toBe(false)
    expect(matches('severity="apocalyptic"', 'apocalyptic')).toBe(true)
  })
})

describe('patterns made to explode', () => {
  test.each([
    ['(a+)+$', 50_000, (length: number) => `${'a'.repeat(length)}b`],
    ['(a|a)*b', 50_000, (length: number) => 'a'.repeat(length)],
    ['(x+x+)+y', 50_000, (length: number) => 'x'.repeat(length)],
    ['(.*)*(.*)*(.*)*z', 50_000, (length: number) => 'a'.repeat(length)],
    [`${'a?'.repeat(300)}${'a'.repeat(300)}b`, 300, (length: number) => 'a'.repeat(length)],
  ])('%s takes no more than the length of the text asks for', (pattern, length, textOf) => {
    const spentMs = (most: number): number =>
      leastCpuMs(() => expect(matches(`tag=~"${pattern}"`, textOf(most))).toBe(false))
    // the square would be 16
    expect(spentMs(length)).toBeLessThan(12 * Math.max(spentMs(length / 4), 20))
  })
})

test.each(['account', 'feed', 'kind', 'type', 'severity', 'source', 'identifier', 'tag'])(
  'every event has the name %s, so that no feed may have a label of that name',
  (name) => {
    const labelled = (label: string) => () =>
      parseConfig(
        `
accounts: { main: { base_url: 'https://api.example.com', api_key: key } }
feeds: { brand: { type: events, identifier_group: 7, labels: { ${label}: x } } }
sinks: { soc: { type: slack, url: 'https://hooks.example.com/x' } }
route: { sinks: [soc] }
`,
        { file: 'tocsin.yaml', env: {} },
      )
    expect(labelled(name)).toThrow(`labels.${name}: a label may not be called so`)
    expect(labelled(`my-${name}`)).not.toThrow()
  },
)

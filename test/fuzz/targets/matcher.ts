/** Matchers: what parses means the same once printed, and judges any value. */
import { type Matcher, MatcherError, parseMatcher } from '../../../src/routing/matcher.ts'
import { bytesOf } from '../engine/bytes.ts'
import { assertThat } from '../engine/target.ts'

export const dictionary = [
  'severity>=high',
  'type="paste"',
  'tag=~"a|b"',
  '(?i)',
  '\\p{L}',
  '[^',
  '{2,}',
]

export function fuzz(data: Uint8Array): void {
  const bytes = bytesOf(data)
  const matcher = parsed(bytes.text())
  if (matcher === undefined) return
  const values = bytes.texts()
  const answer = matcher.matches(values)
  const printed = `${matcher.name}${matcher.operator}${quoted(matcher.value)}`
  const again = parsed(printed)
  const isSame = again?.value === matcher.value && again.name === matcher.name
  assertThat(isSame, 'means something else once printed', printed)
  assertThat(again.matches(values) === answer, 'judges otherwise once printed', { printed, values })
  const opposite = { '=': '!=', '!=': '=', '=~': '!~', '!~': '=~' }[matcher.operator as string]
  if (opposite === undefined) return
  const denied = parsed(`${matcher.name}${opposite}${quoted(matcher.value)}`)
  assertThat(denied?.matches(values) === !answer, 'agrees with its opposite', { printed, values })
}

function parsed(text: string): Matcher | undefined {
  try {
    return parseMatcher(text)
  } catch (error) {
    if (!(error instanceof MatcherError)) throw error
    const isClear = error.problem.trim() !== '' && error.remedy.trim() !== ''
    assertThat(isClear, 'refused without a problem or a remedy', text)
    return undefined
  }
}

function quoted(value: string): string {
  const escaped = value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
  return `"${escaped}"`
}

/** The grammar of a matcher: `name op value`, the value bare or in double quotes. Knows no meaning. */
import { MatcherError } from './matcher-error.ts'

export interface MatcherText {
  name: string
  /** Whatever run of operator characters stands there. */
  operator: string
  value: string
}

/** Throws MatcherError. */
export function readMatcherText(text: string): MatcherText {
  const parts = /^([A-Za-z_][\w-]*)\s*([=!<>~]+)\s*(.*)/su.exec(text.trim())
  if (!parts) {
    const remedy = 'write a name, an operator and a value, e.g. severity>=high or type="paste"'
    throw new MatcherError(text, 'not a matcher', remedy)
  }
  const [, name = '', operator = '', written = ''] = parts
  const value = written.startsWith('"') ? quotedValue(text, written) : written
  if (!written.startsWith('"')) checkBare(text, { name, operator, value })
  return { name, operator, value }
}

function checkBare(text: string, { name, operator, value }: MatcherText): void {
  if (value === '') {
    throw new MatcherError(text, 'the value is missing', `write ${name}${operator}"" for none`)
  }
  if (/^['`]/.test(value)) {
    throw new MatcherError(text, 'wrong quotes', 'use double quotes around the value')
  }
  if (/[\s"]/.test(value)) {
    const remedy = 'put the value in double quotes, and each matcher in an item of its own'
    throw new MatcherError(text, 'a bare value has no spaces and no quotes', remedy)
  }
  if (value.includes(',') && !operator.includes('~')) {
    const remedy = `write ${name}=~"${value.replaceAll(',', '|')}" for any of several, or quote the value`
    throw new MatcherError(text, 'a bare value has no comma', remedy)
  }
}

/** `\"`, `\\` and `\n` are escapes; any other backslash stands for itself, which suits patterns. */
function quotedValue(text: string, written: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"/su.exec(written)
  if (!quoted) {
    throw new MatcherError(text, 'the quote is not closed', 'end the value with a double quote')
  }
  if (quoted[0].length < written.length) {
    const rest = written.slice(quoted[0].length).trim()
    const remedy = 'write one matcher per item, and \\" for a quote within the value'
    throw new MatcherError(
      text,
      `nothing may follow the closing quote, found ${rest.slice(0, 20)}`,
      remedy,
    )
  }
  return (quoted[1] ?? '').replaceAll(/\\(["\\n])/g, (_escape, character: string) =>
    character === 'n' ? '\n' : character,
  )
}

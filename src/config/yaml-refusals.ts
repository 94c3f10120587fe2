import type { ErrorCode } from 'yaml'
import { refusal, type Refusal } from '../runtime/config-fields.ts'

/** The parser's own messages quote the source, which may hold a secret: these stand in for them. */
const byCode: Partial<Record<ErrorCode, Refusal>> = {
  TAB_AS_INDENT: refusal('a tab where spaces belong', 'indent with spaces'),
  MULTIPLE_DOCS: refusal('a second document', 'end the file before "---"'),
  NON_STRING_KEY: refusal('a key that is no text', 'write a name before ":"'),
  TAG_RESOLVE_FAILED: refusal('a YAML tag', 'remove the "!…"'),
  BAD_SCALAR_START: refusal('a value that begins with a special character', 'put it in quotes'),
  BAD_ALIAS: refusal('not a usable alias', 'put the value in quotes if it begins with "*"'),
  BAD_DQ_ESCAPE: refusal('an unknown escape in double quotes', 'write it in single quotes'),
  BAD_INDENT: refusal('wrongly indented, or a bracket is not closed', 'align it with its siblings'),
  BLOCK_AS_IMPLICIT_KEY: refusal('a second ":" on one line', 'put the value in quotes'),
  MISSING_CHAR: refusal('a quote, bracket, ":" or "," is missing', 'close what was opened'),
  RESOURCE_EXHAUSTION: refusal('nested too deeply', 'write it flatter'),
}

/** `before` is the line up to the error. */
export function syntaxRefusal(code: ErrorCode, before: string): Refusal {
  if (/[{[,].*\$$/.test(before)) {
    return refusal('a placeholder without quotes inside { } or [ ]', 'write it as "${NAME}"')
  }
  return byCode[code] ?? refusal('not readable as YAML', 'correct the line or put values in quotes')
}

import type { Refusal } from '../runtime/config-fields.ts'
import type { Environment } from './environment.ts'

export interface Substituted {
  text: string
  /** Names of the variables that were asked for. */
  variables: string[]
  problems: Refusal[]
}

/**
 * Replaces `${NAME}` and `${NAME:-default}`; `$$` is a literal `$`, any other `$` stays. Works on
 * values that are parsed already, once: what comes out is text and never YAML or a placeholder.
 */
export function substitute(input: string, env: Environment): Substituted {
  const result: Substituted = { text: '', variables: [], problems: [] }
  result.text = input.replaceAll(/\$\$|\$\{([^}]*)(\}?)/g, (found, inner?: string, end?: string) =>
    found === '$$' ? '$' : replacement({ inner: inner ?? '', isClosed: end === '}' }, env, result),
  )
  return result
}

interface Placeholder {
  inner: string
  isClosed: boolean
}

function replacement(
  { inner, isClosed }: Placeholder,
  env: Environment,
  { variables, problems }: Substituted,
): string {
  const [, name, fallback] = /^([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inner) ?? []
  if (!isClosed || name === undefined || fallback?.includes('${')) {
    const remedy = 'write ${NAME} or ${NAME:-default}, or $$ for a literal $'
    problems.push({ problem: 'not a placeholder for a variable', remedy })
    return ''
  }
  variables.push(name)
  const value = Object.hasOwn(env, name) ? env[name] : undefined
  if (fallback !== undefined) return value === undefined || value === '' ? fallback : value
  if (value === undefined) problems.push(missing(name))
  return value ?? ''
}

function missing(name: string): Refusal {
  const remedy = `set it, or give a default: \${${name}:-…}`
  return { problem: `the variable ${name} is not set`, remedy }
}

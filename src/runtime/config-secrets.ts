/** A secret's two keys, `key` and `key_file`: at most one is given, and a file is tried at load. */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { refusal, wrongKind, type Refusal } from './config-fields.ts'
import type { Finding, Rule } from './config-section.ts'
import { messageOf } from './errors.ts'
import { certificateLimits, readFileWithin, secretLimits, type FileLimits } from './read-file.ts'
import { secretFromFile, secretFromText, type Secret } from './secret.ts'

type SecretKeys<Key extends string> = Record<Key | `${Key}_file`, z.ZodOptional<z.ZodString>>

/** The two fields, for a section's shape. */
export function secretKeys<const Key extends string>(key: Key, describe: string): SecretKeys<Key> {
  const remedy = 'write a text, in quotes'
  const field = (description: string): z.ZodOptional<z.ZodString> =>
    z.string(wrongKind('a text', remedy)).meta({ description }).optional()
  return {
    [key]: field(describe),
    [`${key}_file`]: field(`File that holds ${key}, read at each use and trimmed.`),
  } as SecretKeys<Key>
}

export interface SecretRuleOptions {
  required: boolean
  /** Looks at the secret's text, wherever it comes from; must not quote it. */
  check?: (text: string, section: Readonly<Record<string, unknown>>) => Refusal | undefined
}

/** One of the two and not both; the file can be read; the text is there and passes `check`. */
export function secretRule(key: string, { required, check }: SecretRuleOptions): Rule {
  const file = `${key}_file`
  return (section) => {
    const [inline, path] = [section[key], section[file]]
    if (inline !== undefined && path !== undefined) {
      return [{ path: [file], ...refusal(`given beside ${key}`, `keep either ${key} or ${file}`) }]
    }
    if (typeof path === 'string') return findingsAt(file, secretFileProblem(path, section, check))
    if (typeof inline === 'string') return findingsAt(key, textProblem(inline, section, check))
    if (!required || inline !== undefined || path !== undefined) return []
    return [{ path: [key], ...refusal('missing', `write ${key} or ${file}`) }]
  }
}

function findingsAt(key: string, problem: Refusal | undefined): Finding[] {
  return problem === undefined ? [] : [{ path: [key], ...problem }]
}

type Check = SecretRuleOptions['check']
type Section = Readonly<Record<string, unknown>>

function textProblem(text: string, section: Section, check: Check): Refusal | undefined {
  if (text.trim() === '') return refusal('has no value', 'write the secret or remove the line')
  return check?.(text, section)
}

function secretFileProblem(path: string, section: Section, check: Check): Refusal | undefined {
  const content = readable(path, secretLimits)
  if (typeof content !== 'string') return content
  const text = content.trim()
  if (text === '') return refusal(`the file ${path} is empty`, 'put the secret into it')
  const problem = check?.(text, section)
  return problem && refusal(`the content of ${path}: ${problem.problem}`, problem.remedy)
}

/** The text of a file that the configuration names, or why there is none. */
function readable(path: string, limits: FileLimits): string | Refusal {
  try {
    return readFileWithin(path, limits)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG') return noFile(path)
    if (code === 'SPECIAL' || code === 'TOO_LONG') {
      return refusal(messageOf(error), 'name a file that holds this and nothing else')
    }
    return refusal(`the file ${path} cannot be read (${String(code)})`, 'let this user read it')
  }
}

/** Not quoted: a path that leads nowhere may be the secret itself, under the wrong key. */
function noFile(path: string): Refusal {
  if (path.includes(':/')) {
    return refusal('an address where the path of a file belongs', 'write it without "_file"')
  }
  let folder = dirname(path)
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder)
  return refusal(`there is no such file below ${folder}`, 'create it or correct the path')
}

/** A file of certificates that a section names, tried at load. */
export function certificateFileRule(key: string): Rule {
  return pemFileRule(key, /-----BEGIN CERTIFICATE-----/, 'certificate')
}

/** Likewise of a private key. */
export function privateKeyFileRule(key: string): Rule {
  return pemFileRule(key, /-----BEGIN ([A-Z]+ )?PRIVATE KEY-----/, 'private key')
}

function pemFileRule(key: string, shape: RegExp, thing: string): Rule {
  return (section) => {
    const path = section[key]
    if (typeof path !== 'string' || path.trim() === '') return []
    const content = readable(path, certificateLimits)
    if (typeof content !== 'string') return findingsAt(key, content)
    if (shape.test(content)) return []
    return findingsAt(key, refusal(`the file ${path} holds no ${thing}`, 'give a PEM file'))
  }
}

/** The secret of a section that has passed its rule; undefined: neither key is given. */
export function secretIn<const Key extends string>(
  section: { readonly [K in Key | `${Key}_file`]?: string | undefined },
  key: Key,
): Secret | undefined {
  const keys = section as Readonly<Record<string, string | undefined>>
  const [inline, path] = [keys[key], keys[`${key}_file`]]
  if (inline !== undefined) return secretFromText(inline)
  return path === undefined ? undefined : secretFromFile(path)
}

/** Like `secretIn`, for a key whose rule says `required`. */
export function requiredSecretIn<const Key extends string>(
  section: { readonly [K in Key | `${Key}_file`]?: string | undefined },
  key: Key,
): Secret {
  const secret = secretIn(section, key)
  if (secret === undefined) throw new Error(`${key} passed its rule without a value`)
  return secret
}

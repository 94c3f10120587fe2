/** Secrets of the configuration: their keys in the file, their rules, and how weak they are. */
import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { createSecureContext } from 'node:tls'
import { inspect } from 'node:util'
import { z } from 'zod'
import { type Finding, refusal, type Refusal, type Rule, wrongKind } from './config-fields.ts'
import { errorMessage } from '../errors.ts'
import { redactField } from '../logger.ts'
import {
  certificateLimits,
  type FileLimits,
  readFileWithin,
  secretLimits,
} from './private-files.ts'

/**
 * A secret of the configuration. Prints as `<secret>` wherever it is logged, joined or serialised.
 */
export interface Secret {
  /**
   * Returns the value; a file is read at each use and trimmed, so that rotation needs no restart.
   */
  reveal(): string
  /** The file that holds it, if it is in one. */
  readonly file?: string
  toString(): string
  toJSON(): string
}

const hiddenText = '<secret>'

export function createSecret(read: () => string, file?: string): Secret {
  return {
    reveal: read,
    ...(file === undefined ? {} : { file }),
    toString: () => hiddenText,
    toJSON: () => hiddenText,
    [inspect.custom]: () => hiddenText,
  } as Secret
}

/** Whether a value is a Secret, whatever its name: how configurations are hashed and compared. */
export function isSecret(value: unknown): value is Secret {
  const hasReveal = typeof value === 'object' && value !== null && 'reveal' in value
  return hasReveal && typeof value.reveal === 'function'
}

export function secretFromText(text: string): Secret {
  return createSecret(() => text)
}

export function secretFromFile(path: string): Secret {
  return createSecret(() => readFileWithin(path, secretLimits).trim(), path)
}

/**
 * A secret's two keys, `key` and `key_file`: at most one is given, and a file is read at load to
 * check it.
 */
type SecretKeys<Key extends string> = Record<Key | `${Key}_file`, z.ZodOptional<z.ZodString>>

/** The secrets that the loaded sections declare, and the files that hold them: keys by name. */
const declaredKeys = new Map<string, string>()

/**
 * Returns the key of the secret that a name of the file stands for: `secret` for itself and for
 * `secret_file`; undefined: no section declares a secret so. The schema of
 * the whole file must be loaded.
 */
export function findSecretKey(name: string): string | undefined {
  return declaredKeys.get(name)
}

/** Its values stay out of logs, under the names that the file and the code give it. */
function declareSecret(name: string): void {
  declaredKeys.set(name, name)
  redactField(name)
  redactField(name.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase()))
}

/** The two fields, for a section's shape. */
export function secretKeys<const Key extends string>(key: Key, describe: string): SecretKeys<Key> {
  declareSecret(key)
  declaredKeys.set(`${key}_file`, key)
  const remedy = 'write a text, in quotes'
  const field = (description: string): z.ZodOptional<z.ZodString> =>
    z.string(wrongKind('a text', remedy)).meta({ description }).optional()
  return {
    [key]: field(describe),
    [`${key}_file`]: field(`File that holds ${key}, read at each use and trimmed.`),
  } as SecretKeys<Key>
}

/** Declares a key whose file holds a secret that is never written out, such as a private key. */
export function declareSecretFile(key: `${string}_file`): void {
  declaredKeys.set(key, key.replace(/_file$/, ''))
}

interface SecretRuleOptions {
  required: boolean
  /** Checks the secret's text, wherever it comes from; must not quote it. */
  check?: (text: string, section: Readonly<Record<string, unknown>>) => Refusal | undefined
}

/**
 * Checks that only one of the two is given, the file can be read, and the text is there and passes
 * `check`.
 */
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
  const content = readNamedFile(path, secretLimits)
  if (typeof content !== 'string') return content
  const text = content.trim()
  if (text === '') return refusal(`the file ${path} is empty`, 'put the secret into it')
  const problem = check?.(text, section)
  return problem && refusal(`the content of ${path}: ${problem.problem}`, problem.remedy)
}

/** Returns the text of a file that the configuration names, or why there is none. */
export function readNamedFile(path: string, limits: FileLimits): string | Refusal {
  if (path.trim() === '') {
    return refusal('has no value', 'write the path of a file, or remove the line')
  }
  try {
    return readFileWithin(path, limits)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG')
      return missingFileRefusal(path)
    if (code === 'EISDIR') return refusal(`${path} is a folder`, 'name a file in it')
    if (code === 'SPECIAL' || code === 'TOO_LONG') {
      return refusal(errorMessage(error), 'name a file that holds this and nothing else')
    }
    return refusal(`the file ${path} cannot be read (${String(code)})`, 'let this user read it')
  }
}

/** The path is not quoted: one that leads nowhere may be the secret itself, under the wrong key. */
function missingFileRefusal(path: string): Refusal {
  if (path.includes(':/')) {
    return refusal('an address where the path of a file belongs', 'write it without "_file"')
  }
  let folder = dirname(path)
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder)
  return refusal(`there is no such file below ${folder}`, 'create it or correct the path')
}

/** Checks a file of certificates that a section names by reading it at load. */
export function certificateFileRule(key: string): Rule {
  return (section) => {
    const path = section[key]
    if (typeof path !== 'string' || path.trim() === '') return []
    const content = readNamedFile(path, certificateLimits)
    if (typeof content !== 'string') return findingsAt(key, content)
    const found = content.match(/-----BEGIN CERTIFICATE-----.*?(?:-----END CERTIFICATE-----|$)/gs)
    if (found?.every(isCertificate)) return []
    return findingsAt(key, refusal(`the file ${path} holds no certificate`, 'give a PEM file'))
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0
  } catch {
    return false
  }
}

/** Checks the files of a certificate and of its key: both or neither, and they belong together. */
export function keyPairRule(certKey: string, keyKey: `${string}_file`): Rule {
  declareSecretFile(keyKey)
  return (section) => {
    const [cert, key] = [section[certKey], section[keyKey]]
    if (typeof cert !== 'string' || typeof key !== 'string') {
      if (cert === key) return []
      const [given, missing] = cert === undefined ? [keyKey, certKey] : [certKey, keyKey]
      return findingsAt(given, refusal(`given without ${missing}`, `write ${missing} too`))
    }
    try {
      const [certificate, ownKey] = [cert, key].map((path) =>
        readFileWithin(path, certificateLimits),
      )
      createSecureContext({ cert: certificate, key: ownKey })
      return []
    } catch {
      const problem = `no certificate and its key in ${certKey} and ${keyKey}`
      return findingsAt(
        keyKey,
        refusal(problem, 'give two PEM files, the key without a passphrase'),
      )
    }
  }
}

/** The secret of a section that passed its rule; undefined: neither key is given. */
export function secretFromSection<const Key extends string>(
  section: { readonly [K in Key | `${Key}_file`]?: string | undefined },
  key: Key,
): Secret | undefined {
  const keys = section as Readonly<Record<string, string | undefined>>
  const [inline, path] = [keys[key], keys[`${key}_file`]]
  if (inline !== undefined) return secretFromText(inline)
  return path === undefined ? undefined : secretFromFile(path)
}

/** Like `secretFromSection`, for a key whose rule says `required`. */
export function requiredSecretFromSection<const Key extends string>(
  section: { readonly [K in Key | `${Key}_file`]?: string | undefined },
  key: Key,
): Secret {
  const secret = secretFromSection(section, key)
  if (secret === undefined) throw new Error(`${key} passed its rule without a value`)
  return secret
}

/**
 * Hides each word of somebody's text that shares `least` characters in a row with a secret,
 * whatever their case. An answer may quote a part of it.
 */
export function hideSecret(text: string, secret: string, least: number): string {
  const known = secret.toLowerCase()
  const sharesPart = (word: string): boolean =>
    Array.from({ length: Math.max(0, word.length - least + 1) }, (_, at) =>
      word.slice(at, at + least).toLowerCase(),
    ).some((part) => known.includes(part))
  return text.replace(/[\w\-.~+/=]+/g, (word) => (sharesPart(word) ? '<secret>' : word))
}

/**
 * Warns of secrets in files that others can read. They are warnings, because only the operator knows
 * the users of the machine.
 */
import { type Finding, isSection } from '../lib/config/config-fields.ts'
import { findExposure } from '../lib/config/private-files.ts'
import { findSecretKey, secretFromFile } from '../lib/config/secret.ts'
import { isLoopback } from '../lib/config/web-address.ts'
import type { Environment, Mistake } from './config.ts'
import { toList, type Place, toSection } from './parse-file.ts'
import type { Source, Tree } from './yaml-source.ts'

/** A secret as the configuration gives it. */
interface WrittenSecret {
  path: Place
  /** A secret key of its section, or `key`: the private key of a certificate. */
  key: string
  /** The file that holds it; undefined: it is written as text. */
  file: string | undefined
  /** It is written in the configuration, not in a variable, and is none of the sandbox's own. */
  isLiteral: boolean
  read: () => string
}

export function secretWarnings(tree: WrittenTree, source: Source): Finding[] {
  const secrets = findSecrets(tree, source.env)
  return [...secrets.flatMap(exposedFile), ...exposedConfiguration(secrets, source.file)]
}

/** Warns of environment variables that make all connections unsafe. */
export function environmentWarnings(env: Environment): Mistake[] {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] !== '0') return []
  return [
    {
      file: 'environment',
      line: 0,
      column: 0,
      path: 'NODE_TLS_REJECT_UNAUTHORIZED',
      problem: 'no certificate is checked: whoever is in between reads keys, tokens and messages',
      remedy:
        'remove the variable, and name your own authorities in ca_file or NODE_EXTRA_CA_CERTS',
    },
  ]
}

type WrittenTree = Pick<Tree, 'value' | 'variablesAt'>

function findSecrets({ value, variablesAt }: WrittenTree, env: Environment): WrittenSecret[] {
  const isUnset = (name: string): boolean => (env[name] ?? '') === ''
  // Feeds have no secrets, and the names of their labels are the operator's.
  const { feeds: _feeds, ...sections } = toSection(value)
  return listSections([], sections).flatMap(({ path, keys }) =>
    Object.entries(keys).flatMap(([name, content]) =>
      listTexts([...path, name], content).flatMap(({ place, text }) => {
        const key = findSecretKey(name)
        if (key === undefined) return []
        const isFile = name.endsWith('_file')
        const isLiteral = !isFile && variablesAt(place).every(isUnset) && !isSandboxAddress(keys)
        const read = isFile ? (): string => secretFromFile(text).reveal() : (): string => text
        return [{ path: place, key, file: isFile ? text : undefined, isLiteral, read }]
      }),
    ),
  )
}

/** Addresses of the sandbox's upstream and sinks: nothing real listens on this machine in clear. */
function isSandboxAddress({ base_url, url }: PlacedSection['keys']): boolean {
  const address = URL.parse(String(base_url ?? url))
  return address?.protocol === 'http:' && isLoopback(address.hostname)
}

/** A text, or each text of a list, with its place. */
function listTexts(place: Place, content: unknown): { place: Place; text: string }[] {
  if (typeof content === 'string') return content === '' ? [] : [{ place, text: content }]
  return toList(content).flatMap((inner, index) => listTexts([...place, index], inner))
}

interface PlacedSection {
  path: Place
  keys: Readonly<Record<string, unknown>>
}

/** A section and all those within it, also in lists. */
function listSections(path: Place, value: unknown): PlacedSection[] {
  if (Array.isArray(value)) {
    return value.flatMap((one, index) => listSections([...path, index], one))
  }
  if (!isSection(value)) return []
  const inner = Object.entries(value).flatMap(([key, one]) => listSections([...path, key], one))
  return [{ path, keys: value }, ...inner]
}

function exposedFile({ path, file }: WrittenSecret): Finding[] {
  const exposure = file === undefined ? undefined : findExposure(file)
  return exposure ? [{ path, ...exposure }] : []
}

/** Warns about the configuration itself once, at the first secret written in it. */
function exposedConfiguration(secrets: readonly WrittenSecret[], file: string): Finding[] {
  const literal = secrets.filter(isSecretInClear)
  const exposure = literal.length > 0 ? findExposure(file) : undefined
  if (exposure === undefined || literal[0] === undefined) return []
  const more = literal.length === 1 ? '' : ` (and ${literal.length - 1} more)`
  const problem = `a secret is written out here${more}, and ${exposure.problem}`
  const remedy = `${exposure.remedy}, or write ${literal[0].key}_file and put it into a file of its own`
  return [{ path: literal[0].path, problem, remedy }]
}

function isSecretInClear({ isLiteral, read }: WrittenSecret): boolean {
  return isLiteral && holdsSecret(read())
}

/** Returns a text as an address; undefined: it is none, so all of it is the secret. */
function toAddress(text: string): URL | undefined {
  return text.includes('://') ? (URL.parse(text) ?? undefined) : undefined
}

/**
 * Whether a text is no address, or one with a password or a word that looks random, as webhook
 * addresses have; not `collector-v2-production`.
 */
function holdsSecret(text: string): boolean {
  const url = toAddress(text)
  if (url === undefined) return true
  const words = `${url.pathname}${url.search}`.match(/[\w-]{16,}/g) ?? []
  const isDrawn = (word: string): boolean =>
    /(?=\w*\d)(?=\w*[a-z])\w{16}|\d[a-z]+\d|[a-z]\d+[a-z]+\d/i.test(word)
  return url.password !== '' || words.some(isDrawn)
}

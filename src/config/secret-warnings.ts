/**
 * Warns of secrets in files that others can read. They are warnings, because only the operator knows
 * the users of the machine.
 */
import { realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Finding, isSection, refusal, type Refusal } from '../lib/config/config-fields.ts'
import { quoteForShell } from '../lib/errors.ts'
import { findSecretKey } from '../lib/config/secret.ts'
import { isLoopback } from '../lib/config/web-address.ts'
import type { Environment } from './config.ts'
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
  isWrittenOut: boolean
}

export function secretWarnings(tree: WrittenTree, source: Source): Finding[] {
  const secrets = findSecrets(tree, source.env)
  return [...secrets.flatMap(exposedFile), ...exposedConfiguration(secrets, source.file)]
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
        const isLiteral = !isFile && variablesAt(place).every(isUnset)
        const isWrittenOut = isLiteral && holdsSecret(text) && !isSandboxAddress(keys)
        return [{ path: place, key, file: isFile ? text : undefined, isWrittenOut }]
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
  const literal = secrets.filter(({ isWrittenOut }) => isWrittenOut)
  const exposure = literal.length > 0 ? findExposure(file) : undefined
  if (exposure === undefined || literal[0] === undefined) return []
  const more = literal.length === 1 ? '' : ` (and ${literal.length - 1} more)`
  const problem = `a secret is written out here${more}, and ${exposure.problem}`
  const remedy = `${exposure.remedy}, or write ${literal[0].key}_file and put it into a file of its own`
  return [{ path: literal[0].path, problem, remedy }]
}

/** Whether a text is no address, or one with a password or a long word, as webhook addresses have. */
function holdsSecret(text: string): boolean {
  const url = text.includes('://') ? URL.parse(text) : null
  if (url === null || url.password !== '') return true
  return /\w{16}|\w{8}(?:-\w{4}){3}-/.test(`${url.pathname}${url.search}`)
}

/** Docker and Podman mount secrets here, each for one container, whose users may all read it. */
const secretsMount = '/run/secrets'

/**
 * Returns who else may read or change a file that holds a secret, and what to do. undefined: only
 * this user and root, or it is not a regular file. Links are followed: mounted secrets are links,
 * and only the target counts. What the group of a file of root may do is not looked at. Kubernetes
 * (`fsGroup`), packages and systemd pass secrets to a service in this way. What Docker mounts as a
 * secret has the owner and mode of the host's file, which say nothing.
 */
export function findExposure(path: string, ownUid = process.getuid?.()): Refusal | undefined {
  const found = statFile(path)
  if (!found?.stat.isFile() || ownUid === undefined) return undefined
  if (dirname(found.realPath) === secretsMount) return undefined
  const { uid, gid, mode } = found.stat
  const file = quoteForShell(path)
  if (uid !== ownUid && uid !== 0) {
    const problem = `${path} belongs to user ${uid}, and this is user ${ownUid}`
    return refusal(problem, `run as root: chown ${ownUid} ${file} && chmod 600 ${file}`)
  }
  const groupBits = uid === 0 ? 0 : mode >> 3
  const verbs = accessVerbs(mode) || accessVerbs(groupBits)
  if (verbs === '') return undefined
  const who = accessVerbs(mode) === '' ? `group ${gid}` : 'every user'
  return refusal(
    `${who} may ${verbs} ${path} (mode ${(mode & 0o777).toString(8).padStart(4, '0')})`,
    uid === ownUid ? `run: chmod 600 ${file}` : handOverRemedy,
  )
}

const handOverRemedy =
  'let a group of this user alone read it, by chmod 0440; in Kubernetes by defaultMode: 0440 and fsGroup'

/** Returns undefined also if Kubernetes replaces the folder between the two calls. */
function statFile(path: string): { stat: Stats; realPath: string } | undefined {
  try {
    const realPath = realpathSync(path)
    return { stat: statSync(realPath), realPath }
  } catch {
    return undefined // the reader of the file reports that it cannot be read
  }
}

function accessVerbs(bits: number): string {
  return [...(bits & 4 ? ['read'] : []), ...(bits & 2 ? ['change'] : [])].join(' and ')
}

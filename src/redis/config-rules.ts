/** What the keys of `redis` say about each other. */
import { refusal, type Refusal } from '../runtime/config-fields.ts'
import type { Finding, Rule } from '../runtime/config-section.ts'
import { loginProblem } from '../runtime/web-address.ts'

const places = ['url', 'url_file', 'sentinels', 'cluster', 'embedded'] as const

const urlRemedy = 'write redis://host:6379, rediss://host:6379 or unix:///path/to/redis.sock'

/** What is wrong with an address of Redis, or with what stands beside it; never quotes it. */
export function urlProblem(
  input: string,
  section: Readonly<Record<string, unknown>>,
): Refusal | undefined {
  const url = URL.parse(input)
  const isSocket = url?.protocol === 'unix:' && url.hostname === '' && url.pathname.length > 1
  const isHost = (url?.protocol === 'redis:' || url?.protocol === 'rediss:') && url.hostname !== ''
  if (url === null || !(isSocket || isHost)) return refusal('not a Redis address', urlRemedy)
  return (
    loginProblem(url) ??
    databaseProblem(url) ??
    twoLoginsProblem(url, section) ??
    clearTextProblem(url, section)
  )
}

function databaseProblem(url: URL): Refusal | undefined {
  const isSocket = url.protocol === 'unix:'
  const known = isSocket ? ['db'] : ['db', 'family']
  if ([...url.searchParams.keys()].some((key) => !known.includes(key))) {
    const remedy = `write nothing behind "?" but ${known.join(' or ')}`
    return refusal('holds an option that is not known', remedy)
  }
  const written = isSocket ? [] : [url.pathname.slice(1)]
  const numbers = [...written, url.searchParams.get('db') ?? '']
  if (numbers.every((number) => /^\d{0,5}$/.test(number))) return undefined
  const example = isSocket ? 'unix:///path/to/redis.sock?db=2' : 'redis://host:6379/2'
  return refusal('its database is not a number', `write it as in ${example}`)
}

function twoLoginsProblem(
  { username, password }: URL,
  section: Readonly<Record<string, unknown>>,
): Refusal | undefined {
  if (username === '' && password === '') return undefined
  const beside = ['username', 'password', 'password_file'].find((key) => section[key] !== undefined)
  if (beside === undefined) return undefined
  return refusal(`holds a login, and ${beside} stands beside it`, 'keep one of the two')
}

function clearTextProblem(
  { protocol }: URL,
  section: Readonly<Record<string, unknown>>,
): Refusal | undefined {
  const beside = ['ca_file', 'cert_file', 'key_file'].find((key) => section[key] !== undefined)
  if (beside === undefined || protocol === 'rediss:') return undefined
  return refusal(`not encrypted, and ${beside} stands beside it`, 'write rediss:// for TLS')
}

/** Redis is in one place. */
export const onePlace: Rule = (section) => {
  const [first, second] = places
    .filter((key) => section[key] !== undefined)
    .filter((key, i, given) => key !== 'url_file' || !given.slice(0, i).includes('url'))
  if (first === undefined || second === undefined) return []
  const remedy = 'keep one of url, sentinels, cluster and embedded'
  return [{ path: [second], ...refusal(`given beside ${first}`, remedy) }]
}

/** What belongs to another kind of place than the one that is given, or misses its other half. */
export const sameKind: Rule = (section) => {
  const has = (key: string): boolean => section[key] !== undefined
  const isEmbedded = has('embedded')
  const isMany = has('sentinels') || has('cluster')
  const isEncrypted = section['tls'] === true || section['tls'] === 'true'
  const found: Finding[] = []
  const blame = (key: string, problem: string, remedy: string): void => {
    if (has(key)) found.push({ path: [key], ...refusal(problem, remedy) })
  }
  for (const key of isEmbedded ? [...loginKeys, ...tlsKeys] : []) {
    blame(key, 'not for a private server', 'remove the line: only this user reaches its socket')
  }
  if (!isEmbedded && !isMany) blame('tls', 'not beside url', 'write rediss:// in url for TLS')
  for (const key of isMany && !isEncrypted ? tlsKeys.slice(1) : []) {
    blame(key, 'TLS is off', 'write tls: true, or remove the line')
  }
  if (has('username') && !has('password') && !has('password_file')) {
    blame('username', 'a user without a password', 'write password or password_file too')
  }
  if (!has('key_file')) blame('cert_file', 'a certificate without its key', 'write key_file too')
  if (!has('cert_file')) blame('key_file', 'a key without its certificate', 'write cert_file too')
  return [...found, ...socketFindings(section['embedded'])]
}

const loginKeys = ['username', 'password', 'password_file']
const tlsKeys = ['tls', 'ca_file', 'cert_file', 'key_file']

/** The system takes no longer path for a socket: the least of Linux and macOS, with its name in it. */
const longestFolder = 90

function socketFindings(folder: unknown): Finding[] {
  if (typeof folder !== 'string' || Buffer.byteLength(folder) <= longestFolder) return []
  const problem = `longer than ${longestFolder} characters, with the folder of this file`
  return [{ path: ['embedded'], ...refusal(problem, 'choose a folder with a shorter path') }]
}

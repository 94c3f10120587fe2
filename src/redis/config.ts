/** The configuration section `redis`: its keys, their rules, and the shape that the code reads. */
import type { z } from 'zod'
import {
  type Finding,
  flag,
  list,
  name,
  refusal,
  type Refusal,
  type Rule,
  section,
  text,
  textField,
  wholeNumber,
} from '../lib/config/config-fields.ts'
import {
  certificateFileRule,
  keyPairRule,
  type Secret,
  secretFromText,
  secretFromSection,
  secretKeys,
  secretRule,
} from '../lib/config/secret.ts'
import { loginProblem } from '../lib/config/web-address.ts'

const placeKeys = ['url', 'url_file', 'sentinels', 'cluster', 'embedded'] as const

const urlRemedy = 'write redis://host:6379, rediss://host:6379 or unix:///path/to/redis.sock'

/** Checks an address of Redis. The refusal never quotes it, since it may hold a password. */
function urlProblem(
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

/** One of `url`, `sentinels`, `cluster`, `embedded`; secretRule refuses url beside url_file. */
const onePlaceRule: Rule = (section) => {
  const [first, second] = placeKeys
    .filter((key) => section[key] !== undefined)
    .filter((key, i, given) => key !== 'url_file' || !given.slice(0, i).includes('url'))
  if (first === undefined || second === undefined) return []
  const remedy = 'keep one of url, sentinels, cluster and embedded'
  return [{ path: [second], ...refusal(`given beside ${first}`, remedy) }]
}

/** Refuses keys that do not apply to the given kind of Redis, and a user without a password. */
const samePlaceRule: Rule = (section) => {
  const has = (key: string): boolean => section[key] !== undefined
  const isEmbedded = has('embedded')
  const isMany = has('sentinels') || has('cluster')
  const isEncrypted = section['tls'] === true || section['tls'] === 'true'
  const findings: Finding[] = []
  const blame = (key: string, problem: string, remedy: string): void => {
    if (has(key)) findings.push({ path: [key], ...refusal(problem, remedy) })
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
  return [...findings, ...socketFindings(section['embedded'])]
}

const loginKeys = ['username', 'password', 'password_file']
const tlsKeys = ['tls', 'ca_file', 'cert_file', 'key_file']

/** macOS takes socket paths of at most 103 bytes, Linux 107; `/redis.sock` is part of the path. */
const maxFolderBytes = 90

function socketFindings(folder: unknown): Finding[] {
  if (typeof folder !== 'string' || Buffer.byteLength(folder) <= maxFolderBytes) return []
  const problem = `longer than ${maxFolderBytes} characters, with the folder of this file`
  return [{ path: ['embedded'], ...refusal(problem, 'choose a folder with a shorter path') }]
}

export interface Endpoint {
  host: string
  port: number
}

/** Has one of `url`, `sentinels`, `cluster` and `embedded`. */
export interface RedisConfig {
  /** redis://, rediss:// or unix://; may hold a password. */
  url?: Secret | undefined
  sentinels?: SentinelsConfig | undefined
  /** Some nodes of a Cluster; they name the others. */
  cluster?: Endpoint[] | undefined
  /** Folder of a private server; an absolute path. */
  embedded?: string | undefined
  username?: string | undefined
  password?: Secret | undefined
  /** For sentinels and a Cluster; `url` says it by its scheme. */
  tls?: boolean
  caFile?: string | undefined
  certFile?: string | undefined
  keyFile?: string | undefined
  prefix: string
  allowUnsafe: boolean
}

const defaultUrl = 'redis://127.0.0.1:6379'

const sentinelsConfig = section(
  {
    name: text('Name of the master, as the sentinels know it.'),
    nodes: list(endpoint(26379), 'The sentinels, as host:port.', 'write at least one host:port'),
    db: wholeNumber({ describe: 'Number of the database at the master.', min: 0 }).prefault(0),
    username: text('User at the sentinels, where they ask for one.').optional(),
    ...secretKeys('password', 'Password at the sentinels, where they ask for one.'),
  },
  {
    describe: 'A Redis that sentinels watch over; who is its master is asked at each connection.',
    rules: [secretRule('password', { required: false })],
  },
).transform((file) => ({
  name: file.name,
  nodes: file.nodes,
  db: file.db,
  username: file.username,
  password: secretFromSection(file, 'password'),
}))

export type SentinelsConfig = z.output<typeof sentinelsConfig>

export const redisConfig: z.ZodType<RedisConfig> = section(
  {
    ...secretKeys('url', `redis://, rediss:// or unix:// address. Default: ${defaultUrl}`),
    sentinels: sentinelsConfig.optional(),
    cluster: list(
      endpoint(6379),
      'Some nodes of a Redis Cluster, as host:port; they name the others.',
      'write at least one host:port',
    ).optional(),
    embedded: textField({
      describe:
        'Folder of a private, persistent redis-server that Tocsin starts itself, for one machine.',
      remedy: 'write a folder, such as ./data',
      parse: (input) =>
        /\p{Cc}/u.test(input)
          ? refusal('holds control characters', 'write a folder, such as ./data')
          : input,
    }).optional(),
    username: text('User at Redis, of its ACL. Default: the default user.').optional(),
    ...secretKeys('password', 'Password at Redis, unless url holds it.'),
    tls: flag('Speak TLS with sentinels and their Redis, or with a Cluster.').optional(),
    ca_file: text('PEM file of further certificate authorities.').optional(),
    cert_file: text('PEM file of the certificate that Redis asks for.').optional(),
    key_file: text('PEM file of its key.').optional(),
    prefix: name('First part of every key in Redis.').prefault('tocsin'),
    allow_unsafe: flag('Accept a Redis that can evict or forget.').prefault(false),
  },
  {
    describe:
      'The Redis or Valkey that holds the ledger: one of url, sentinels, cluster, embedded.',
    rules: [
      secretRule('url', { required: false, check: urlProblem }),
      secretRule('password', { required: false }),
      certificateFileRule('ca_file'),
      keyPairRule('cert_file', 'key_file'),
      onePlaceRule,
      samePlaceRule,
    ],
  },
).transform((file) => ({
  url:
    secretFromSection(file, 'url') ??
    (namesOtherPlace(file) ? undefined : secretFromText(defaultUrl)),
  sentinels: file.sentinels,
  cluster: file.cluster,
  embedded: file.embedded,
  username: file.username,
  password: secretFromSection(file, 'password'),
  tls: file.tls ?? false,
  caFile: file.ca_file,
  certFile: file.cert_file,
  keyFile: file.key_file,
  prefix: file.prefix,
  allowUnsafe: file.allow_unsafe,
}))

function namesOtherPlace(file: {
  sentinels?: unknown
  cluster?: unknown
  embedded?: unknown
}): boolean {
  return (file.sentinels ?? file.cluster ?? file.embedded) !== undefined
}

function endpoint(usualPort: number): z.ZodType<Endpoint> {
  return textField({
    describe: `host:port; without a port ${usualPort}.`,
    remedy: `write host:port, such as redis-1.example.com:${usualPort}`,
    parse: (input) => parseEndpoint(input, usualPort),
  })
}

function parseEndpoint(input: string, usualPort: number): Endpoint | Refusal {
  const remedy = `write host:port, such as redis-1.example.com:${usualPort}`
  if (input.includes('://')) return refusal('an address with a scheme', remedy)
  if (input.includes('@')) return refusal('holds a login', 'write username and password beside it')
  const url = URL.parse(`tcp://${input}`)
  const isBare = url !== null && `${url.pathname}${url.search}${url.hash}` === ''
  if (!isBare || url.hostname === '' || url.port === '0') return refusal('not host:port', remedy)
  const host = url.hostname.replaceAll(/^\[|\]$/g, '')
  return { host, port: Number(url.port || usualPort) }
}

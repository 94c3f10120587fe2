import type { z } from 'zod'
import {
  flag,
  list,
  name,
  refusal,
  text,
  textField,
  wholeNumber,
  type Refusal,
} from '../runtime/config-fields.ts'
import {
  certificateFileRule,
  privateKeyFileRule,
  secretIn,
  secretKeys,
  secretRule,
} from '../runtime/config-secrets.ts'
import { section } from '../runtime/config-section.ts'
import { secretFromText, type Secret } from '../runtime/secret.ts'
import { onePlace, sameKind, urlProblem } from './config-rules.ts'

export interface Endpoint {
  host: string
  port: number
}

export interface SentinelsConfig {
  /** Of the master, as the sentinels know it. */
  name: string
  nodes: Endpoint[]
  /** The number of the database at the master. */
  db: number
  /** Of the sentinels themselves. */
  username: string | undefined
  password: Secret | undefined
}

/** Has one of `url`, `sentinels`, `cluster` and `embedded`. */
export interface RedisConfig {
  /** redis://, rediss:// or unix://; may hold a password. */
  url?: Secret | undefined
  sentinels?: SentinelsConfig | undefined
  /** Some of the nodes; they name the others. */
  cluster?: Endpoint[] | undefined
  /** The folder of a private server; absolute. */
  embedded?: string | undefined
  username?: string | undefined
  password?: Secret | undefined
  /** To sentinels and to a Cluster; `url` says so itself. */
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
).transform((file): SentinelsConfig => ({
  name: file.name,
  nodes: file.nodes,
  db: file.db,
  username: file.username,
  password: secretIn(file, 'password'),
}))

export const redisConfig: z.ZodType<RedisConfig> = section(
  {
    ...secretKeys('url', `redis://, rediss:// or unix:// address. Default: ${defaultUrl}`),
    sentinels: sentinelsConfig.optional(),
    cluster: list(
      endpoint(6379),
      'Some nodes of a Redis Cluster, as host:port; they name the others.',
      'write at least one host:port',
    ).optional(),
    embedded: text(
      'Folder of a private, persistent redis-server that Tocsin starts itself, for one machine.',
    ).optional(),
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
      certificateFileRule('cert_file'),
      privateKeyFileRule('key_file'),
      onePlace,
      sameKind,
    ],
  },
).transform((file) => ({
  url: secretIn(file, 'url') ?? (hasOther(file) ? undefined : secretFromText(defaultUrl)),
  sentinels: file.sentinels,
  cluster: file.cluster,
  embedded: file.embedded,
  username: file.username,
  password: secretIn(file, 'password'),
  tls: file.tls ?? false,
  caFile: file.ca_file,
  certFile: file.cert_file,
  keyFile: file.key_file,
  prefix: file.prefix,
  allowUnsafe: file.allow_unsafe,
}))

function hasOther(file: { sentinels?: unknown; cluster?: unknown; embedded?: unknown }): boolean {
  return (file.sentinels ?? file.cluster ?? file.embedded) !== undefined
}

function endpoint(usualPort: number): z.ZodType<Endpoint> {
  return textField({
    describe: `host:port; without a port ${usualPort}.`,
    remedy: `write host:port, such as redis-1.example.com:${usualPort}`,
    parse: (input) => endpointIn(input, usualPort),
  })
}

function endpointIn(input: string, usualPort: number): Endpoint | Refusal {
  const remedy = `write host:port, such as redis-1.example.com:${usualPort}`
  if (input.includes('://')) return refusal('an address with a scheme', remedy)
  if (input.includes('@')) return refusal('holds a login', 'write username and password beside it')
  const url = URL.parse(`tcp://${input}`)
  const isBare = url !== null && `${url.pathname}${url.search}${url.hash}` === ''
  if (!isBare || url.hostname === '' || url.port === '0') return refusal('not host:port', remedy)
  const host = url.hostname.replaceAll(/^\[|\]$/g, '')
  return { host, port: Number(url.port || usualPort) }
}

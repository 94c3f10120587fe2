import type { z } from 'zod'
import { flag, name, refusal, type Refusal } from '../runtime/config-fields.ts'
import { secretIn, secretKeys, secretRule } from '../runtime/config-secrets.ts'
import { laterKeys, section } from '../runtime/config-section.ts'
import { secretFromText, type Secret } from '../runtime/secret.ts'
import { loginProblem } from '../runtime/web-address.ts'

export interface RedisConfig {
  /** redis://, rediss:// or unix://; may hold a password. */
  url: Secret
  prefix: string
  allowUnsafe: boolean
}

const defaultUrl = 'redis://127.0.0.1:6379'
const urlRemedy = `write redis://host:6379, rediss://host:6379 or unix:///path/to/redis.sock`

export const redisConfig: z.ZodType<RedisConfig> = section(
  {
    ...secretKeys('url', `redis://, rediss:// or unix:// address. Default: ${defaultUrl}`),
    prefix: name('First part of every key in Redis.').prefault('tocsin'),
    allow_unsafe: flag('Accept a Redis that can evict or forget.').prefault(false),
    ...laterKeys({
      sentinels: 'it speaks to one Redis, named by url',
      cluster: 'it speaks to one Redis, named by url',
      embedded: 'it uses a Redis that runs already, named by url',
    }),
  },
  {
    describe: 'The Redis or Valkey that holds the ledger.',
    rules: [secretRule('url', { required: false, check: urlProblem })],
  },
).transform((file) => ({
  url: secretIn(file, 'url') ?? secretFromText(defaultUrl),
  prefix: file.prefix,
  allowUnsafe: file.allow_unsafe,
}))

function urlProblem(input: string): Refusal | undefined {
  const url = URL.parse(input)
  const isSocket = url?.protocol === 'unix:' && url.hostname === '' && url.pathname.length > 1
  const isHost = (url?.protocol === 'redis:' || url?.protocol === 'rediss:') && url.hostname !== ''
  if (isSocket) return undefined
  return url !== null && isHost ? loginProblem(url) : refusal('not a Redis address', urlRemedy)
}

import type { Secret } from '../runtime/secret.ts'

export interface RedisConfig {
  /** redis://, rediss:// or unix://; may hold a password. */
  url: Secret
  prefix: string
  allowUnsafe: boolean
}

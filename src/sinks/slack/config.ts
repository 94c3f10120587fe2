import type { Secret } from '../../runtime/secret.ts'

export interface SlackConfig {
  name: string
  type: 'slack'
  url: Secret
  limitPerSecond: number
  /** Lets the address be private or loopback, over http too. */
  allowPrivate: boolean
}

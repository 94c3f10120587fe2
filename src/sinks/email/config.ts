import type { Secret } from '../../runtime/secret.ts'

export interface EmailConfig {
  name: string
  type: 'email'
  /** smtp:// or smtps:// with user and password. */
  smtp: Secret
  from: string
  to: string[]
  /** `required`: STARTTLS or smtps off loopback; `off`: in clear, by the operator's word. */
  tls: 'required' | 'off'
  limitPerSecond: number | undefined
}

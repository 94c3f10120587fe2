import type { Secret } from '../../runtime/secret.ts'

export interface WebhookConfig {
  name: string
  type: 'webhook'
  url: Secret
  /** Signing secrets, newest first; empty: unsigned. */
  secrets: Secret[]
  allowPrivate: boolean
  batch: { max: number; waitMs: number; maxBytes: number } | undefined
  limitPerSecond: number | undefined
}

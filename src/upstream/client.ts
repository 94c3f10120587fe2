/**
 * The client of the upstream API for one account. Every request waits for a slot under the
 * organization's limit, and every failure is an UpstreamError. The client holds no cursor, and
 * retries nothing but a request whose token the API refuses with a 401.
 */
import type { CallOperation } from './call.ts'
import type { Capabilities } from './access/capabilities.ts'
import type { Documents } from './documents.ts'
import type { AccountConfig, Tier } from './config.ts'
import type { AccountPause } from './access/tokens.ts'

export interface TokenTest {
  organizationId: number | undefined
  tenantId: number | undefined
  /** Masked: the first letter and the domain. */
  userEmail: string | undefined
}

export interface UpstreamClient extends Documents {
  readonly account: AccountConfig
  /** Sends an operation of the table in `resources/operations.ts`. */
  call: CallOperation
  /** Which optional operations this account's server and key support. */
  readonly capabilities: Capabilities
  /** Tests the key with `GET /tokens/test`, even if the account is paused. Throws UpstreamError. */
  testToken(options?: { signal?: AbortSignal }): Promise<TokenTest>
  /** Asks the service whether it is well. Not every server tells. Throws UpstreamError. */
  checkHealth(signal: AbortSignal): Promise<void>
  /** The organization's id, once known. */
  organization(): number | undefined
  /**
   * Reads the organization's id from Redis, without a request. Throws UpstreamError if the key
   * cannot be read.
   */
  recallOrganization(): Promise<void>
  /**
   * Asks the API for the organization's id unless it is known, as the first request does. Throws
   * UpstreamError if the key is refused.
   */
  findOrganization(signal: AbortSignal): Promise<void>
  /** The share of the tier's rate that this process uses, 0 to 1. */
  utilization(tier: Tier): number
  /** The account's pause, for metrics and health; null if it is not paused. */
  pause(): Promise<AccountPause | null>
  /** How far the API's clock is ahead of ours by its last answer, ms. */
  clockSkewMs(): number | undefined
  close(): void
}

import { TocsinError } from '../runtime/errors.ts'

/** Why a request to the service failed; the word labels `feed_polls_failed_total`. */
export type ServiceReason =
  | 'auth' // 401 after one renewal, 403: the key or its tenant is refused
  | 'rate_limited' // 429
  | 'rejected' // other 4xx: the request itself is refused
  | 'unavailable' // 5xx, refused, DNS, cut
  | 'timeout'
  | 'contract' // an answer that is not what service.md describes

export class ServiceError extends TocsinError {
  override readonly name = 'ServiceError'
  readonly code = 'TOCSIN_SERVICE'
  readonly reason: ServiceReason
  readonly status: number | undefined
  /** The service's own stable code, e.g. `RATELIMIT_REACHED`. */
  readonly serviceCode: string | undefined
  readonly retryAfterMs: number | undefined

  constructor(
    reason: ServiceReason,
    message: string,
    options: { status?: number; serviceCode?: string; retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause })
    this.reason = reason
    this.status = options.status
    this.serviceCode = options.serviceCode
    this.retryAfterMs = options.retryAfterMs
  }
}

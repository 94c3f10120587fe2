import { TocsinError } from '../runtime/errors.ts'

/** `quota`: a search would use what `quota_reserve` keeps; `endless`: the service's pages have no end. */
export type AuditReason = 'quota' | 'endless'

/** Why an audit ended early, though the service answered. */
export class AuditError extends TocsinError {
  override readonly name = 'AuditError'
  readonly code = 'TOCSIN_AUDIT'
  readonly reason: AuditReason

  constructor(reason: AuditReason, message: string) {
    super(message)
    this.reason = reason
  }
}

import { TocsinError } from '../runtime/errors.ts'

export type StoreReason =
  | 'unreachable' // no connection to Redis
  | 'unsafe' // it can evict or forget
  | 'too_new' // written by a newer version
  | 'out_of_memory'

export class StoreError extends TocsinError {
  override readonly name = 'StoreError'
  readonly code = 'TOCSIN_STORE'
  readonly reason: StoreReason

  constructor(reason: StoreReason, message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.reason = reason
  }
}

import { messageOf, TocsinError } from '../runtime/errors.ts'

export type StoreReason =
  | 'unreachable' // no connection to Redis
  | 'refused' // it refuses the sign-in or a command
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

/** What the Redis at `place` says no to for reasons of its own; undefined for anything else. */
export function refusalOf(error: unknown, place: string): StoreError | undefined {
  const said = messageOf(error)
  const [word = ''] = /^[A-Z]+(?= )/.exec(said) ?? []
  const refused = (problem: string): StoreError =>
    new StoreError('refused', `redis.url: Redis at ${place} ${problem}`, { cause: error })
  switch (word) {
    case 'OOM':
      return new StoreError(
        'out_of_memory',
        'Redis has no memory left; raise maxmemory, or make room',
        { cause: error },
      )
    case 'NOAUTH':
      return refused(
        'asks for a password (NOAUTH); write redis://user:password@host, or :password@',
      )
    case 'WRONGPASS':
      return refused('refuses this user or password (WRONGPASS); correct them')
    case 'NOPERM':
    case 'READONLY':
    case 'MISCONF':
    case 'NOREPLICAS':
      return refused(`refuses the command: ${said}`)
    default:
      return undefined
  }
}

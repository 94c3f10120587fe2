import { isUnknownPath } from '../../service/capabilities.ts'
import type { ServiceClient } from '../../service/client.ts'
import { ServiceError } from '../../service/service-error.ts'

/** The service speaks of what it was asked for, not of the key, the way there or its own state. */
const statuses = new Set([400, 403, 404, 409, 410, 422])

/** Puts the thing asked for in front of a refusal: `identifier group 99: …`. */
export async function nameFailure<Result>(thing: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    const isAboutIt = error instanceof ServiceError && statuses.has(error.status ?? 0)
    throw isAboutIt ? new ServiceError(error.reason, `${thing}: ${error.message}`, error) : error
  }
}

interface Uncertain {
  /** Under which name it is remembered whether it is there. */
  capability: string
  operation: string
  /** Which permission of the key's user it takes. */
  permission: string
  /** What to do where it is not to be had. */
  instead: string
}

/**
 * Asks for what not every server has and not every key may, whatever is remembered; what comes of it is
 * remembered. A refusal says which permission or server it takes, and what to do instead.
 */
export async function askUncertain<Result>(
  { capabilities }: Pick<ServiceClient, 'capabilities'>,
  { capability, operation, permission, instead }: Uncertain,
  work: Promise<Result>,
): Promise<Result> {
  try {
    const result = await work
    await capabilities.note(capability, true)
    return result
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const isUnknown = isUnknownPath(error) || error.status === 405
    if (!isUnknown && error.status !== 403) throw error
    await capabilities.note(capability, false)
    const why = isUnknown
      ? `this server does not have ${operation}, which servers of 2026 have`
      : `${operation} takes the permission ${permission}, which the key's user lacks; ask an administrator`
    throw new ServiceError(error.reason, `${why}; ${instead}`, error)
  }
}

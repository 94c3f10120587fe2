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

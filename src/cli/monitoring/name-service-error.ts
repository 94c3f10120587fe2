import { ServiceError } from '../../service/service-error.ts'

/** Puts what a step was about in front of whatever went wrong: of several, nobody else can tell. */
export async function nameServiceError<Result>(
  thing: string,
  work: Promise<Result>,
): Promise<Result> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw new ServiceError(error.reason, `${thing}: ${error.message}`, error)
  }
}

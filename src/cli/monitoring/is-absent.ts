import { ServiceError } from '../../service/service-error.ts'

/** The service says that it has no such thing; a web page that is not found says nothing of it. */
export function isAbsent(error: unknown): boolean {
  return error instanceof ServiceError && error.status === 404 && error.fault === undefined
}

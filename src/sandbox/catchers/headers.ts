import type { FastifyRequest } from 'fastify'

/** Headers of a request, names in lower case, repeated ones joined. */
export function headersOf(request: FastifyRequest): Record<string, string> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  )
}

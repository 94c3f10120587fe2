import type { FastifyRequest } from 'fastify'
import { systemClock } from '../runtime/clock.ts'
import { appendBounded } from './bounded-list.ts'
import type { Tier } from './options.ts'

/** One HTTP request that reached the sandbox, in order of arrival. */
export interface SandboxRequest {
  /** System wall clock, milliseconds. */
  atMs: number
  method: string
  /** Without the query. */
  path: string
  query: Record<string, unknown>
  /** The parsed JSON body; undefined where there is none. */
  body: unknown
  /** null while unanswered, and for good where the connection was cut or hangs. */
  status: number | null
  organization: number | null
  tier: Tier | null
  /** It came sooner than the limit of its tier allows. */
  isOverLimit: boolean
  /** What the fault that struck it does; null: none did. */
  fault: string | null
}

export interface RequestLog {
  readonly entries: readonly SandboxRequest[]
  open(request: FastifyRequest): SandboxRequest
  entryOf(request: FastifyRequest): SandboxRequest
}

export function createRequestLog(keep: number): RequestLog {
  const entries: SandboxRequest[] = []
  const byRequest = new WeakMap<FastifyRequest, SandboxRequest>()

  function open(request: FastifyRequest): SandboxRequest {
    const entry: SandboxRequest = {
      atMs: systemClock.now(),
      method: request.method,
      path: request.url.split('?')[0] ?? request.url,
      query: request.query as Record<string, unknown>,
      body: undefined,
      status: null,
      organization: null,
      tier: null,
      isOverLimit: false,
      fault: null,
    }
    byRequest.set(request, entry)
    appendBounded(entries, entry, keep)
    return entry
  }

  return { entries, open, entryOf: (request) => byRequest.get(request) ?? open(request) }
}

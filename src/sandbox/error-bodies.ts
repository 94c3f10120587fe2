/** The four shapes in which the service says that something went wrong (public documentation, errors). */
import type { FastifyReply } from 'fastify'

type ErrorShape = 'error' | 'detail' | 'message' | 'text'

export interface ErrorSaid {
  status: number
  code?: string | undefined
  message?: string | undefined
  shape?: ErrorShape | undefined
}

const codes: Record<number, string> = {
  400: 'BAD_REQUEST',
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  429: 'RATELIMIT_REACHED',
}

export function sendError(reply: FastifyReply, said: ErrorSaid): FastifyReply {
  const body = errorBody(said)
  return reply
    .code(said.status)
    .type(typeof body === 'string' ? 'text/plain' : 'application/json')
    .send(typeof body === 'string' ? body : JSON.stringify(body))
}

function errorBody({ status, code, message, shape }: ErrorSaid): unknown {
  const text = message ?? `the sandbox answers ${status}`
  const word = code ?? codes[status] ?? 'ERROR'
  switch (shape ?? usualShape(status)) {
    case 'error':
      return { error: { code: word, message: text, data: null } }
    case 'detail':
      return { detail: [validationEntry(['body'], text)] }
    case 'message':
      return { message: text, code: word }
    case 'text':
      return message ?? 'upstream request timeout'
  }
}

/** One entry of a 422 body. */
export function validationEntry(
  loc: (string | number)[],
  msg: string,
  input: unknown = null,
): Record<string, unknown> {
  return { loc, msg, type: 'value_error', input, ctx: {} }
}

function usualShape(status: number): ErrorShape {
  if (status === 422) return 'detail'
  return status >= 502 && status <= 504 ? 'text' : 'error'
}

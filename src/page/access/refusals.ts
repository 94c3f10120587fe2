/** How a request is refused: in HTML or as a problem (RFC 9457), logged, and counted by its reason. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from '../../lib/logger.ts'
import type { Metrics } from '../../lib/metrics/metrics.ts'

/** What is said for each reason. */
const refusals = {
  no_users: [403, 'This page is for this machine alone until http.users names who may use it.'],
  sign_in_required: [401, 'Sign in first.'],
  wrong_password: [401, 'Wrong name or password.'],
  wrong_token: [401, 'The token is not known.'],
  unknown_user: [403, 'The proxy names somebody who is not one of http.users.'],
  role: [403, 'Your role may look, and not act.'],
  missing: [403, 'The form has no token; open the page again and repeat.'],
  forged: [403, 'The token of the form is not of this session or page; open the page again.'],
  expired: [403, 'The form is too old; open the page again and repeat.'],
  replayed: [403, 'The form was sent already; look whether it is done.'],
  cross_site: [
    403,
    'The request comes from another site. If people reach this page by that address, set http.public_url to it.',
  ],
  media_type: [415, 'The API takes JSON, and the page takes forms.'],
  rate_limited: [429, 'Too many wrong tries; wait.'],
  busy: [503, 'Others sign in at this moment; try again.'],
  unavailable: [503, 'Redis does not answer; try again.'],
} as const satisfies Record<string, readonly [status: number, detail: string]>

export type Reason = keyof typeof refusals

export interface Refusal {
  reason: Reason
  /** Of the client. */
  address: string
  /** A user of the configuration; what somebody types as a name may be a password. */
  name?: string | undefined
  waitMs?: number
}

/** What a view of a refusal says. */
export interface RefusedData {
  status: number
  detail: string
}

interface Witnesses {
  logger: Logger
  metrics: Pick<Metrics, 'httpRefusalsTotal'>
}

/** Logs and counts a refusal, sets status and headers, and returns what to say. */
export function note(
  { logger, metrics }: Witnesses,
  reply: FastifyReply,
  { reason, address, name, waitMs = 1000 }: Refusal,
): RefusedData {
  const [status, detail] = refusals[reason]
  metrics.httpRefusalsTotal.inc({ reason })
  const about = { cause: reason, list: 'hosts', name: address } as const
  logger.repeated.warn({ reason, address, user: name }, 'http request refused', about)
  reply.code(status)
  if (status === 429 || status === 503) {
    reply.header('retry-after', String(Math.ceil(waitMs / 1000)))
  }
  return { status, detail }
}

export function isApi({ url }: Pick<FastifyRequest, 'url'>): boolean {
  return /^\/api(?:[/?]|$)/.test(url)
}

/** RFC 9457; `about:blank` is the type of a problem that its status says whole. */
export function sendProblem(
  reply: FastifyReply,
  { status, detail, reason }: RefusedData & { reason?: Reason },
): FastifyReply {
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  return reply
    .code(status)
    .type('application/problem+json')
    .send(JSON.stringify({ type: 'about:blank', status, detail, ...(reason && { reason }) }))
}

export function sendPage(reply: FastifyReply, html: string): FastifyReply {
  return reply.type('text/html; charset=utf-8').send(html)
}

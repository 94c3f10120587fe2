/** Whose events are: a tenant sees those in its identifier groups, with what it noted on them. */
import type { FastifyReply } from 'fastify'
import { sendError } from '../error-bodies.ts'
import type { History } from '../history/history.ts'
import type { SandboxEvent } from '../history/sandbox-event.ts'
import type { SandboxSettings } from '../options.ts'
import type { TokenGrant } from './tokens.ts'

interface Asked {
  settings: Pick<SandboxSettings, 'groups'>
  grant: TokenGrant | null
}

export function isOwn(event: SandboxEvent, { settings, grant }: Asked): boolean {
  return settings.groups.some(
    ({ id, tenantId }) => tenantId === grant?.tenantId && event.groupIds.includes(id),
  )
}

/** The event as the caller may see it in a search over everything: of another's, only what it is. */
export function seenBy(event: SandboxEvent, asked: Asked): SandboxEvent {
  if (isOwn(event, asked)) return event
  return {
    ...event,
    override: null,
    matchedAtMs: null,
    tags: [],
    notes: null,
    ignoredAtMs: null,
    remediatedAtMs: null,
  }
}

type Reached = { event: SandboxEvent; refusal?: never } | { event?: never; refusal: FastifyReply }

/** One of the caller's own events, or the answer that refuses it. */
export function reachEvent(
  reply: FastifyReply,
  uid: string,
  { history, ...asked }: Asked & { history: History },
): Reached {
  const event = history.get(uid)
  if (!event) return { refusal: sendError(reply, { status: 404, message: 'no such event' }) }
  if (isOwn(event, asked)) return { event }
  const message = 'an event of another tenant'
  return { refusal: sendError(reply, { status: 403, message }) }
}

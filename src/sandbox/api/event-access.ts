/** Whose events and identifiers are: a tenant sees its own, with what it noted on them. */
import type { FastifyReply } from 'fastify'
import { sendError, validationEntry, type ErrorSaid } from '../error-bodies.ts'
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
  { history, shape, ...asked }: Asked & { history: History; shape?: ErrorSaid['shape'] },
): Reached {
  const event = history.get(uid)
  if (!event) return { refusal: sendError(reply, { status: 404, message: 'no such event', shape }) }
  if (isOwn(event, asked)) return { event }
  const message = 'an event of another tenant'
  return { refusal: sendError(reply, { status: 403, message, shape }) }
}

interface IdentifierAsker {
  id: string
  grant: TokenGrant | null
  /** Whose identifier it is; undefined: there is none. */
  tenantOf: (identifierId: number) => number | undefined
  shape: NonNullable<ErrorSaid['shape']>
}

/** The answer to whoever asks for an identifier that is not the tenant's; null: it is. */
export function refuseIdentifier(
  reply: FastifyReply,
  { id, grant, tenantOf, shape }: IdentifierAsker,
): FastifyReply | null {
  if (!/^\d+$/.test(id)) {
    const detail = [validationEntry(['path', 'identifier_id'], 'not an integer', id)]
    return reply.code(422).send({ detail })
  }
  const tenant = tenantOf(Number(id))
  if (tenant === undefined) {
    return sendError(reply, { status: 404, message: 'no such identifier', shape })
  }
  if (grant?.tenantId === tenant) return null
  return sendError(reply, { status: 403, message: 'an identifier of another tenant', shape })
}

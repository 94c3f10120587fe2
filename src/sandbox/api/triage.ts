/**
 * Triage: events and credentials ignored, remediated and restored, and what the tenant notes about
 * an event. What the service answers for a target that it refuses is not published; here the whole
 * request is refused and changes nothing.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import type { TriageAction } from '../../upstream/resources/enumerations.ts'
import { credentialAction } from '../../upstream/resources/credentials.ts'
import { eventAction, tenantNote } from '../../upstream/resources/events.ts'
import { credentialUid, type CredentialHistory } from '../credentials/history.ts'
import { hashPair } from '../credentials/requests.ts'
import type { History } from '../history/history.ts'
import type { SandboxSettings } from '../options.ts'
import { type RequestLog, sendError, validationEntry } from '../server.ts'
import { findOwnEvent } from './filters.ts'
import { findGrant, type TokenGrant, type Tokens } from './guard.ts'

/** Unknown fields are ignored, and null changes nothing. */
const anyEventAction = eventAction.strip()
const anyCredentialAction = credentialAction.strip()
const anyNote = z.object({
  tags: tenantNote.shape.tags.nullable(),
  notes: tenantNote.shape.notes.nullable(),
  severity: tenantNote.shape.severity.nullable(),
})

interface TriageParts {
  settings: SandboxSettings
  history: History
  credentialHistory: CredentialHistory
  tenantOf: (identifierId: number) => number | undefined
  tokens: Tokens
  log: RequestLog
}

interface Asked {
  grant: TokenGrant | null
  body: unknown
}

export function addTriage(app: FastifyInstance, parts: TriageParts): void {
  const { tokens, log } = parts
  app.post('/firework/v4/events/actions', (request, reply) => {
    const asked = { grant: findGrant(request, tokens), body: log.entryFor(request).body }
    return actOnEvents(reply, asked, parts)
  })
  app.post('/firework/v4/credentials/actions', (request, reply) => {
    const asked = { grant: findGrant(request, tokens), body: log.entryFor(request).body }
    return actOnCredentials(reply, asked, parts)
  })
  app.patch('/firework/v4/events/tenant/metadata', (request, reply) => {
    const asked = { grant: findGrant(request, tokens), body: log.entryFor(request).body }
    const { uid } = request.query as { uid?: string }
    return noteOnEvent(reply, { ...asked, uid }, parts)
  })
}

function actOnEvents(
  reply: FastifyReply,
  { grant, body }: Asked,
  parts: TriageParts,
): FastifyReply {
  const { history, settings } = parts
  const parsed = anyEventAction.safeParse(body)
  if (!parsed.success) return refuseBody(reply, parsed.error)
  const { targets, action } = parsed.data
  for (const { uid } of targets) {
    const { refusal } = findOwnEvent(reply, uid, { history, settings, grant })
    if (refusal) return refusal
  }
  for (const { uid } of targets) history.change(uid, toChange(action.type, settings.now()))
  return reply.send('null')
}

function actOnCredentials(
  reply: FastifyReply,
  { grant, body }: Asked,
  { credentialHistory, settings, tenantOf }: TriageParts,
): FastifyReply {
  const parsed = anyCredentialAction.safeParse(body)
  if (!parsed.success) return refuseBody(reply, parsed.error)
  const { targets, action } = parsed.data
  const own = credentialHistory
    .all()
    .filter(({ identifierIds }) => identifierIds.some((id) => tenantOf(id) === grant?.tenantId))
  const wanted = new Set(targets.map(({ credential_hash: hash }) => hash))
  const found = own.filter((credential) => wanted.has(String(hashPair(credential))))
  const known = new Set(found.map((credential) => String(hashPair(credential))))
  if (known.size < wanted.size) {
    return sendError(reply, { status: 404, message: 'no such credential' })
  }
  for (const { id } of found) {
    credentialHistory.change(credentialUid(id), toChange(action.type, settings.now()))
  }
  return reply.send('null')
}

function toChange(
  action: TriageAction,
  nowMs: number,
): { ignoredAtMs?: number | null; remediatedAtMs?: number | null } {
  switch (action) {
    case 'ignore':
      return { ignoredAtMs: nowMs }
    case 'unignore':
      return { ignoredAtMs: null }
    case 'remediate':
      return { remediatedAtMs: nowMs }
    case 'unremediate':
      return { remediatedAtMs: null }
  }
}

function noteOnEvent(
  reply: FastifyReply,
  { grant, body, uid }: Asked & { uid: string | undefined },
  { history, settings }: TriageParts,
): FastifyReply {
  if (uid === undefined) {
    return reply.code(422).send({ detail: [validationEntry(['query', 'uid'], 'field required')] })
  }
  const parsed = anyNote.safeParse(body)
  if (!parsed.success) return refuseBody(reply, parsed.error)
  const { event, refusal } = findOwnEvent(reply, uid, { history, settings, grant })
  if (refusal) return refusal
  const tags = parsed.data.tags ?? event.tags
  const notes = parsed.data.notes ?? event.notes
  const severity = parsed.data.severity ?? event.override
  history.change(uid, { tags, notes, override: severity })
  return reply.send({ uid, tags, notes, severity })
}

function refuseBody(reply: FastifyReply, { issues }: z.ZodError): FastifyReply {
  const detail = issues.map(({ path, message }) =>
    validationEntry(
      ['body', ...path.map((key) => (typeof key === 'number' ? key : String(key)))],
      message,
    ),
  )
  return reply.code(422).send({ detail })
}

/**
 * Triage back to the service: events and credentials ignored, remediated or restored, and what the
 * tenant notes about an event. The public documents have these operations, so a server may be
 * without.
 */
import { z } from 'zod'
import { looksLikeHtml } from '../failures.ts'
import { eventSeverities, type TriageAction, triageActions } from './enumerations.ts'
import {
  type CallOptions,
  checkRequest,
  type OperationParts,
  pathPart,
  readWritten,
  write,
} from './operation.ts'

/** The most targets that one request may name. */
export const maxTargets = { events: 10, credentials: 100 } as const

/** All operations use the basic tier. The first two answer without saying anything per target. */
export interface TriageOperations {
  /** Acts on at most 10 events. `POST /firework/v4/events/actions`. */
  actOnEvents(
    request: { action: TriageAction; uids: readonly string[] } & CallOptions,
  ): Promise<void>
  /**
   * Acts on at most 100 credentials by their `credential_hash`. `POST
   * /firework/v4/credentials/actions`.
   */
  actOnCredentials(
    request: { action: TriageAction; hashes: readonly string[] } & CallOptions,
  ): Promise<void>
  /**
   * Changes what the tenant notes about an event; what is left out stays. `PATCH
   * /firework/v4/events/tenant/metadata`.
   */
  noteOnEvent(
    request: { uid: string; note: z.input<typeof tenantNote> } & CallOptions,
  ): Promise<WireTenantNote>
}

export function createTriageOperations(parts: OperationParts): TriageOperations {
  /** The answer has no published shape; a web page is no answer of the API. */
  async function act(path: string, body: unknown, asked: CallOptions): Promise<void> {
    const answer = await write(parts, { method: 'POST', path, body }, asked)
    if (looksLikeHtml(answer.body)) readWritten(answer, z.unknown())
  }

  return {
    async actOnEvents({ action, uids, ...asked }) {
      const given = { targets: uids.map((uid) => ({ uid })), action: { type: action } }
      const body = checkRequest(eventAction, given)
      await act('/firework/v4/events/actions', body, asked)
    },
    async actOnCredentials({ action, hashes, ...asked }) {
      const targets = hashes.map((hash) => ({ credential_hash: hash }))
      const body = checkRequest(credentialAction, { targets, action: { type: action } })
      await act('/firework/v4/credentials/actions', body, asked)
    },
    async noteOnEvent({ uid, note, ...asked }) {
      const path = `/firework/v4/events/tenant/metadata?uid=${pathPart(uid)}`
      const body = checkRequest(tenantNote, note)
      return readWritten(await write(parts, { method: 'PATCH', path, body }, asked), wireTenantNote)
    },
  }
}

const word = z.string().min(1)
const action = z.strictObject({ type: z.enum(triageActions) })

export const eventAction = z.strictObject({
  targets: z
    .array(z.strictObject({ uid: word }))
    .min(1)
    .max(maxTargets.events),
  action,
})

export const credentialAction = z.strictObject({
  targets: z
    .array(z.strictObject({ credential_hash: word }))
    .min(1)
    .max(maxTargets.credentials),
  action,
})

export const tenantNote = z.strictObject({
  tags: z.array(word).optional(),
  notes: z.string().optional(),
  severity: z.enum(eventSeverities).optional(),
})
export type TenantNote = z.input<typeof tenantNote>

export const wireTenantNote = z.looseObject({
  uid: z.string(),
  notes: z.string().nullish(),
  tags: z.array(z.string()).nullish(),
  severity: z.string().nullish(),
})
export type WireTenantNote = z.infer<typeof wireTenantNote>

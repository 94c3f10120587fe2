/** Masks the secrets in answers of the API and withholds texts that may hold one, unless revealed. */
import type { z } from 'zod'
import { fullMask } from '../../masking/mask-secret.ts'
import {
  maskIdentity,
  maskKnown,
  withheldText,
  withholdIn,
  withholdTag,
} from '../../masking/masking.ts'
import { type WireAlert, wireAlert } from '../../upstream/resources/assets.ts'
import {
  wireCookie,
  type WireCookie,
  wireCredential,
  type WireCredential,
} from '../../upstream/resources/credentials.ts'
import {
  eventOperations,
  wireSearchItem,
  type WireSearchItem,
} from '../../upstream/resources/events.ts'
import { type Fields, type Operation, secretTexts } from '../../upstream/resources/operation.ts'
import { policyOperations } from '../../upstream/resources/policies.ts'
import { reportOperations, wireReport, type WireReport } from '../../upstream/resources/reports.ts'
import { parseTimestamp } from '../../upstream/timestamps.ts'

/** What a request tells of its answer: the secrets in it, and what was asked for. */
export interface Asked {
  secrets: readonly string[]
  request: Fields
}

type Mask = (item: never, asked: Asked) => unknown

const masksByItem = new Map<z.ZodType | undefined, Mask>([
  [wireCredential, maskCredential],
  [wireCookie, maskCookie],
  [wireSearchItem, (item: WireSearchItem, { secrets }) => maskItem(item, secrets)],
  [wireReport, maskReport],
  [wireAlert, maskAlert],
])

/** Policies hold the words of people at the service, and no leak. */
const masksByName = new Map<string, Mask>([
  ...Object.values(policyOperations).map(({ name }) => [name, (item: unknown) => item] as const),
  [reportOperations.get.name, maskReport],
  [reportOperations.getByRequest.name, maskReportRequest],
  [eventOperations.expand.name, maskExpanded],
  [eventOperations.get.name, maskFullEvent],
  [eventOperations.activity.name, maskActivity],
])

/** Masks one item of an operation's answer, or the answer that is no list. */
export function maskAnswer({ name, item }: Operation, answer: unknown, asked: Asked): unknown {
  const mask: Mask = masksByName.get(name) ?? masksByItem.get(item) ?? maskIdentifier
  return mask(answer as never, asked)
}

/** Masks the secret that was searched for wherever it occurs, and every other secret. */
export function maskAllSecrets<Value>(value: Value, secrets: readonly string[] = []): Value {
  return withholdIn(mapTexts(value, maskKnown(secrets))) as Value
}

/** Changes every text in a value except keys. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((entry) => mapTexts(entry, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, mapTexts(inner, change)]),
  )
}

/** Masks what is known to be secret, and the rest; a year is a common password, and no timestamp. */
function maskRecord<Value>(record: Value, secrets: readonly string[]): Value {
  const known = maskKnown(secrets)
  const hidden = mapTexts(record, (text) => (parseTimestamp(text) === null ? known(text) : text))
  return maskAllSecrets(hidden) as Value
}

function maskCredential(record: WireCredential, { secrets }: Asked): WireCredential {
  const shown = maskRecord(record, [...secrets, ...(record.hash ? [record.hash] : [])])
  // Badly parsed dumps hold login and secret in one field.
  const { identity_name } = shown
  return { ...shown, ...(identity_name && { identity_name: maskIdentity(identity_name) }) }
}

/** Of a value nothing remains; other fields may hold it, too. */
function maskCookie(cookie: WireCookie, { secrets }: Asked): WireCookie {
  const shown = maskRecord(cookie, [...secrets, ...(cookie.value ? [cookie.value] : [])])
  return { ...shown, ...(cookie.value && { value: fullMask }) }
}

/** Masks an item except for its uid, by which the event is requested. */
function maskItem(item: WireSearchItem, secrets: readonly string[]): WireSearchItem {
  const known = maskKnown(secrets)
  const { highlights, metadata, tenant_metadata: tenant, ...rest } = item
  const extracts = mapTexts(highlights ?? {}, known) as Record<string, string[]>
  return {
    ...maskAllSecrets(rest, secrets),
    metadata: { ...maskAllSecrets(metadata, secrets), uid: metadata.uid },
    ...(tenant !== undefined && {
      tenant_metadata: tenant && {
        ...maskAllSecrets(tenant, secrets),
        ...(tenant.tags && { tags: tenant.tags.map((tag) => withholdTag(known(tag))) }),
      },
    }),
    ...(highlights !== undefined && {
      highlights: highlights && withholdIn(extracts, metadata.uid),
    }),
  }
}

/** An identifier may watch for a secret, and be called like it; any other answer likewise. */
function maskIdentifier(row: { data?: unknown } | undefined, { secrets }: Asked): unknown {
  return maskAllSecrets(row, [...secrets, ...secretTexts(row?.data)])
}

/** The name of the field decides what is masked: of a cookie every value that does not describe it. */
function maskExpanded(row: { password?: unknown }, { request: { field } }: Asked): unknown {
  const secrets = typeof row.password === 'string' ? [row.password] : []
  const name = String(field)
  return maskAllSecrets({ [name]: row }, secrets)[name] ?? {}
}

function maskActivity({ activity }: { activity: FullEvent }, asked: Asked): unknown {
  return { activity: maskFullEvent(activity, asked) }
}

interface FullEvent {
  data?: Record<string, unknown> | null | undefined
}

function maskFullEvent(event: FullEvent | null, { request }: Asked): unknown {
  const { data, ...rest } = event ?? {}
  const uid = String(request['uid'])
  return { ...withholdIn(rest), ...(data && { data: withholdIn(data, uid) }) }
}

/** A report may quote secrets, such as stolen logins. */
function maskReport(report: WireReport): WireReport {
  const { related_activity_uids } = report
  return { ...withholdIn(report), ...(related_activity_uids && { related_activity_uids }) }
}

function maskReportRequest(request: { report?: unknown }): unknown {
  const { report } = request
  const read = wireReport.safeParse(report)
  return { ...request, report: read.success ? maskReport(read.data) : withholdIn(report) }
}

/** Channels are configured by secrets; only the names of what configures them are shown. */
function maskAlert(alert: WireAlert): WireAlert {
  const names = Object.keys(alert.params ?? {})
  return { ...alert, params: Object.fromEntries(names.map((name) => [name, fullMask])) }
}

/** Whether a value holds a mask, which must never be written back in place of the secret. */
export function holdsMask(value: unknown): boolean {
  const text = JSON.stringify(value)
  return text.includes(fullMask) || text.includes(withheldText)
}

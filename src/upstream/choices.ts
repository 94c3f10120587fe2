/**
 * What is a choice between operations: lists that have a newer and an older one, and full events. And
 * files of reports.
 */
import type { z } from 'zod'
import { type CallOptions, type CallParts, type CallOperation, send } from './call.ts'
import { isOperationMissing, isUnknownOperation, isUnknownPath } from './access/capabilities.ts'
import { UpstreamError } from './error.ts'
import { type Answer, looksLikeHtml, parseErrorBody } from './failures.ts'
import { assetOperations } from './resources/assets.ts'
import { identifierTypes, type reportFileFormats } from './resources/enumerations.ts'
import {
  eventOperations,
  type wireActivityAnswer,
  wireEvents,
  type WireFullEvent,
} from './resources/events.ts'
import { identifierOperations } from './resources/identifiers.ts'
import { buildRequest, type Operation, type RequestOf } from './resources/operation.ts'
import type { WireSearchPage } from './resources/page.ts'
import { reportOperations } from './resources/reports.ts'
import { readAnswer } from './access/session.ts'

export type ReportFileFormat = (typeof reportFileFormats)[number]

export interface Choices {
  /** Returns one page of the tenant's groups; the older operation has neither pages nor counts. */
  listGroups(
    request: RequestOf<typeof identifierOperations.groups>,
    asked: CallOptions,
  ): Promise<Chosen<Pick<WireSearchPage, 'items' | 'next'>>>
  /** Returns one page of identifiers; v3 lists more types, and only enabled ones unless asked. */
  listIdentifiers(
    request: RequestOf<typeof identifierOperations.list>,
    asked: CallOptions,
  ): Promise<Chosen<WireSearchPage>>
  /**
   * Returns the full event, or why there is none; only the latter is final. If v4 has no full
   * event, its older shape is tried where the server has it.
   */
  getEvent(request: { uid: string } & CallOptions): Promise<EventAnswer>
  /** Throws UpstreamError `contract` for what is no file of the format. */
  downloadReport(
    request: { id: number; format: ReportFileFormat } & CallOptions,
  ): Promise<Uint8Array>
}

interface Chosen<Result> {
  result: Result
  isOlder: boolean
}

export function createChoices(parts: CallParts, call: CallOperation): Choices {
  return {
    ...createListChoices(call),
    async getEvent({ uid, ...asked }) {
      const built = buildRequest(eventOperations.get as Operation, { uid })
      const request = { ...built, isWelcome: hasNoDetail }
      const answer = readEvent(await send(parts, request, asked), uid)
      if (answer.kind === 'detail' || answer.why === 'mismatch') return answer
      const older = await tryOlderOperation(parts, () => getActivity(call, uid, asked))
      return older?.kind === 'detail' ? older : answer
    },
    async downloadReport({ id, format, ...asked }) {
      const built = buildRequest(reportOperations.download as Operation, { report_id: id, format })
      const request = { ...built, isFile: true }
      return readReportFile(await send(parts, request, asked), format)
    },
  }
}

interface Alternatives<Result> {
  newer: () => Promise<Result>
  older: () => Promise<Result>
  /** Whether the request names something: a refusal may then be about that. */
  namesSomething: boolean
}

/** Asks the newer operation, and once it was refused the older one, so that pages fit each other. */
function createPreference(): <Result>(asks: Alternatives<Result>) => Promise<Chosen<Result>> {
  let isRefused = false
  return async ({ newer, older, namesSomething }) => {
    const isMissing = namesSomething ? isUnknownOperation : isOperationMissing
    try {
      if (!isRefused) return { result: await newer(), isOlder: false }
    } catch (error) {
      if (!(error instanceof UpstreamError) || !isMissing(error)) throw error
      isRefused = true
    }
    return { result: await older(), isOlder: true }
  }
}

function createListChoices(call: CallOperation): Pick<Choices, 'listGroups' | 'listIdentifiers'> {
  const preferGroups = createPreference()
  const preferIdentifiers = createPreference()
  return {
    listGroups: (request, asked) =>
      preferGroups<Pick<WireSearchPage, 'items' | 'next'>>({
        newer: async () => (await call(identifierOperations.groups, request, asked)).page,
        older: async () => ({ items: await call(assetOperations.groups, {}, asked) }),
        namesSomething: Boolean(request.from),
      }),
    async listIdentifiers(request, asked) {
      const { group_id: group, ...filters } = request
      const olderRequest = { ...filters, parent_group_id: group }
      const newer = async () => (await call(identifierOperations.list, request, asked)).page
      const older = async () =>
        (await call(identifierOperations.listOlder, olderRequest, asked)).page
      const isInNewer = (request.types ?? []).every((type) => identifierTypes.includes(type))
      if (!isInNewer) return { result: await older(), isOlder: true }
      const namesSomething = group !== undefined || Boolean(request.from)
      return preferIdentifiers({ newer, older, namesSomething })
    },
  }
}

export type EventAnswer =
  | { kind: 'detail'; event: WireFullEvent; data: Record<string, unknown> }
  /**
   * In this order: the type has no full event, the uid is unknown, its data is empty, or the answer
   * is about another event.
   */
  | { kind: 'none'; why: 'unsupported' | 'not_found' | 'empty' | 'mismatch' }

/** Whether a refusal only means that there is no full event. */
function hasNoDetail({ status, body }: Answer): boolean {
  return status === 404 || (status === 400 && parseErrorBody(body).code === 'UNSUPPORTED')
}

/** Reads an answer about one event, or a refusal that `hasNoDetail` accepts. */
function readEvent(answer: Answer, uid: string): EventAnswer {
  if (answer.status === 404) return { kind: 'none', why: 'not_found' }
  if (answer.status === 400) return { kind: 'none', why: 'unsupported' }
  const found = readAnswer(answer, wireEvents)
  const event = found.find(({ metadata }) => metadata?.uid === uid) ?? found.find(hasNoUid)
  if (!event) return { kind: 'none', why: found.length === 0 ? 'not_found' : 'mismatch' }
  const data = event.data ?? {}
  return Object.keys(data).length === 0
    ? { kind: 'none', why: 'empty' }
    : { kind: 'detail', event, data }
}

function hasNoUid({ metadata }: WireFullEvent): boolean {
  return metadata?.uid === undefined || metadata.uid === null
}

async function getActivity(
  call: CallOperation,
  uid: string,
  asked: CallOptions,
): Promise<EventAnswer> {
  try {
    return readActivity(await call(eventOperations.activity, { uid }, asked), uid)
  } catch (error) {
    if (!(error instanceof UpstreamError) || isUnknownPath(error)) throw error
    if (error.status === 404) return { kind: 'none', why: 'not_found' }
    if (error.serviceCode === 'UNSUPPORTED') return { kind: 'none', why: 'unsupported' }
    throw error
  }
}

/** The older operation has the uid in the header or in the data. */
function readActivity(
  { activity: { header, data } }: z.infer<typeof wireActivityAnswer>,
  uid: string,
): EventAnswer {
  const shownUid = header?.uid ?? data?.['uid'] ?? uid
  if (shownUid !== uid) return { kind: 'none', why: 'mismatch' }
  if (!data || Object.keys(data).length === 0) return { kind: 'none', why: 'empty' }
  return { kind: 'detail', event: { event_type: header?.type, metadata: { uid }, data }, data }
}

/**
 * Returns what the older operation gives; undefined if it is missing, closed to the key, or its
 * answer makes no sense.
 */
async function tryOlderOperation(
  { capabilities }: CallParts,
  ask: () => Promise<EventAnswer>,
): Promise<EventAnswer | undefined> {
  if (await capabilities.isRefused('activities')) return undefined
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    if (isUnknownOperation(error))
      // a gateway may have said it
      await capabilities.refuse('activities', {
        why: `the service answers ${error.status}`,
        forMs: 3_600_000,
      })
    if (isOperationMissing(error) || error.reason === 'contract') return undefined
    throw error
  }
}

/** The first bytes of a file: docx is a ZIP archive. What the answer calls itself is not documented. */
const signatures: Record<ReportFileFormat, Buffer> = {
  docx: Buffer.from('PK\u0003\u0004'),
  pdf: Buffer.from('%PDF-'),
}

function readReportFile(
  { status, file = Buffer.alloc(0) }: Answer,
  format: ReportFileFormat,
): Uint8Array {
  if (signatures[format].equals(file.subarray(0, signatures[format].length))) return file
  const isHtml = looksLikeHtml(new TextDecoder().decode(file.subarray(0, 500)))
  throw new UpstreamError(
    'contract',
    `the answer is ${isHtml ? 'a web page' : `no file of the format ${format}`}`,
    { status, fault: isHtml ? 'html' : undefined },
  )
}

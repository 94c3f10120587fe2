/** Full events, which not every event has, and the files of reports. */
import { type CallOptions, type CallParts, send } from './call.ts'
import { UpstreamError } from './error.ts'
import { type Answer, looksLikeHtml, parseErrorBody } from './failures.ts'
import type { reportFileFormats } from './resources/enumerations.ts'
import { eventOperations, wireEvents, type WireFullEvent } from './resources/events.ts'
import { buildRequest, type Operation } from './resources/operation.ts'
import { reportOperations } from './resources/reports.ts'
import { readAnswer } from './access/session.ts'

export type ReportFileFormat = (typeof reportFileFormats)[number]

export interface Documents {
  /** Returns the full event, or why there is none, which is final. */
  getEvent(request: { uid: string } & CallOptions): Promise<EventAnswer>
  /** Throws UpstreamError `contract` for what is no file of the format. */
  downloadReport(
    request: { id: number; format: ReportFileFormat } & CallOptions,
  ): Promise<Uint8Array>
}

export function createDocuments(parts: CallParts): Documents {
  return {
    async getEvent({ uid, ...asked }) {
      const built = buildRequest(eventOperations.get as Operation, { uid })
      return readEvent(await send(parts, { ...built, isWelcome: hasNoDetail }, asked), uid)
    },
    async downloadReport({ id, format, ...asked }) {
      const built = buildRequest(reportOperations.download as Operation, { report_id: id, format })
      return readReportFile(await send(parts, { ...built, isFile: true }, asked), format)
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
  const event = found.find(({ metadata }) => (metadata?.uid ?? uid) === uid)
  if (!event) return { kind: 'none', why: found.length === 0 ? 'not_found' : 'mismatch' }
  const data = event.data ?? {}
  return Object.keys(data).length === 0
    ? { kind: 'none', why: 'empty' }
    : { kind: 'detail', event, data }
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

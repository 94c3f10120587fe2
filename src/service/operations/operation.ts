/** What the operations of the service share: how one is asked for, and how its answer is read. */
import type { z } from 'zod'
import type { Capabilities } from '../capabilities.ts'
import type { Tier } from '../config.ts'
import type { OrganizationLookup } from '../organization-lookup.ts'
import type { Turn } from '../pacing/pick-next.ts'
import type { TakeOptions } from '../pacing/turn-queue.ts'
import { readAnswer } from '../read-answer.ts'
import { ServiceError } from '../service-error.ts'
import type { Call, Session } from '../session.ts'
import type { Answer } from '../transport/failures.ts'

/** In whose name a request takes its turn, and how long it may wait for it. */
export interface Asked extends TakeOptions {
  turn: Turn
  /** Of a write: its turn has come, and from now on it may arrive. What this throws stops it. */
  onSend?: () => void
}

/** As `Asked`, where an account may count the request against another limit. */
export interface AskedOfTier extends Asked {
  tier?: Tier
}

export interface OperationParts {
  session: Session
  lookup: OrganizationLookup
}

/** Of operations that not every server has. */
export interface UncertainParts extends OperationParts {
  capabilities: Capabilities
}

/** One request whose tier is basic unless it says otherwise. */
export type Request = Omit<Call, 'tier' | 'turn' | keyof TakeOptions> & { tier?: Tier }

/** Any answer below 300, once the organization whose limit counts is known. */
export async function ask(
  { session, lookup }: OperationParts,
  request: Request,
  { onSend: _ofWrites, ...asked }: AskedOfTier,
): Promise<Answer> {
  await lookup.ensure(asked.signal)
  return session.call({ tier: 'basic', ...request, ...asked })
}

/** The answer to a request that changes nothing, in its shape. */
export async function read<T>(
  parts: OperationParts,
  shape: z.ZodType<T>,
  request: Request,
  asked: AskedOfTier,
): Promise<T> {
  return readAnswer(await ask(parts, request, asked), shape)
}

/**
 * The answer to a request that changes something. Where no answer came although the request may have
 * arrived, the error says so: it must not be repeated blindly.
 */
export async function write(
  parts: OperationParts,
  request: Request,
  asked: AskedOfTier,
): Promise<Answer> {
  let isSent = false
  const onSend = (): void => {
    asked.onSend?.()
    isSent = true
  }
  try {
    return await ask(parts, { ...request, onSend }, asked)
  } catch (error) {
    const isOpen = isSent && error instanceof ServiceError && mayHaveArrived(error)
    throw isOpen ? withDoubt(error) : error
  }
}

/** The answer to `write` in its shape; where it has another, the request was taken all the same. */
export function readWritten<T>(answer: Answer, shape: z.ZodType<T>): T {
  try {
    return readAnswer(answer, shape)
  } catch (error) {
    throw error instanceof ServiceError ? withDoubt(error) : error
  }
}

/** A failure in front of the service has changed nothing; a gateway's own page says nothing of that. */
function mayHaveArrived({ reason, status, fault }: ServiceError): boolean {
  if (reason === 'timeout') return status === undefined
  if (reason === 'contract') return fault === 'too_large'
  if (reason !== 'unavailable') return false
  return fault === undefined || fault === 'cut' || fault === 'html'
}

function withDoubt(error: ServiceError): ServiceError {
  const doubt = 'it may have been done all the same: look before you repeat it'
  const { status, serviceCode, fault, details } = error
  const options = { status, serviceCode, fault, details, mayBeDone: true }
  return new ServiceError(error.reason, `${error.message}; ${doubt}`, options)
}

/** A number or word as one part of a path. */
export function pathPart(value: string | number): string {
  return encodeURIComponent(String(value))
}

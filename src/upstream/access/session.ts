/**
 * Sends one account's authorised requests: gets a token, waits for a slot, and retries with a new
 * token after a 401. A key that stays refused pauses the account.
 */
import { z } from 'zod'
import type { Clock } from '../../lib/clock.ts'
import type { AccountConfig } from '../config.ts'
import { UpstreamError } from '../error.ts'
import { type Answer, errorFromAnswer, looksLikeHtml } from '../failures.ts'
import type { PacedRequest, Pacer, SlotRequest } from '../rate-limits.ts'
import { wireTokenGrant } from '../resources/page.ts'
import {
  type AccountAccess,
  type AccountKey,
  fitsHeader,
  type Token,
  type TokenCache,
} from './tokens.ts'
import { answerBytes, type TransportRequest } from '../transport.ts'

export interface Call extends PacedRequest {
  method: TransportRequest['method']
  path: string
  body?: unknown
  /** Number of items requested, if the answer is a page. */
  pageSize?: number | undefined
  isFile?: boolean
  ignoresPause?: boolean
  /** Called after a 401: what was sent was not done. */
  onRefused?: () => void
}

interface SessionOptions {
  account: AccountConfig
  accountKey: () => AccountKey
  state: AccountAccess
  tokens: TokenCache
  pacer: Pacer
  clock: Clock
}

export interface Session {
  /** Returns an answer below 300 or that `isWelcome` accepts; throws UpstreamError otherwise. */
  call(call: Call, isWelcome?: (answer: Answer) => boolean): Promise<Answer>
}

/**
 * Tokens tried per call; the refusal of the last is final. An old token may have been revoked, and a
 * fresh one ended where another replica made one at the same time.
 */
const maxTokens = 3
/** How long a token request waits for its slot. */
const tokenSlotMs = 10_000
/** How long the question after the service's health waits for its slot. */
const healthSlotMs = 10_000

export function createSession(options: SessionOptions): Session {
  const { account, accountKey, state, tokens, pacer } = options

  async function sendWith(token: Token, asked: Call): Promise<Answer> {
    try {
      return await pacer.send(toTransportRequest(asked, token), asked)
    } catch (error) {
      if (error instanceof UpstreamError && error.fault === 'unsent') await tokens.refuse(token)
      throw error
    }
  }

  return {
    async call(asked, isWelcome = () => false) {
      await state.assertOpen(asked.ignoresPause)
      for (let used = 1; ; used += 1) {
        const token = await tokens.get(asked.signal)
        const answer = await sendWith(token, asked)
        if (isWelcome(answer)) return answer
        if (answer.status < 300) {
          await state.reportSuccess()
          return answer
        }
        const secrets = [...accountSecrets(account, accountKey(), token), ...(asked.secrets ?? [])]
        if (answer.status !== 401) throw errorFromAnswer(answer, secrets)
        asked.onRefused?.()
        await tokens.refuse(token)
        if (used === maxTokens) throw await state.pause(errorFromAnswer(answer, secrets))
      }
    },
  }
}

type GenerateOptions = Omit<SessionOptions, 'tokens'>

/** Exchanges the API key for a token. A refusal pauses the account. Throws UpstreamError. */
export async function generateToken(
  options: GenerateOptions,
  signal: AbortSignal,
): Promise<string> {
  const { account, pacer, state, clock } = options
  const key = options.accountKey()
  const slot: SlotRequest = { kind: 'token', name: account.name, dueSinceMs: clock.now() }
  const path = '/tokens/generate'
  const request: TransportRequest = {
    method: 'POST',
    path,
    authorization: key.apiKey,
    signal,
  }
  if (account.tenantId !== undefined) request.body = { tenant_id: account.tenantId }
  const paced = { slot, tier: 'basic', signal, maxWaitMs: tokenSlotMs } as const
  const answer = await pacer.send(request, paced)
  if (answer.status < 300) return readToken(answer)
  const failure = errorFromAnswer(answer, accountSecrets(account, key))
  throw failure.reason === 'auth' ? await state.pause(failure) : failure
}

/** No contract error, which would leave an event without its details for good. */
function readToken(answer: Answer): string {
  const { token } = readAnswer(answer, wireTokenGrant)
  if (fitsHeader(token)) return token
  throw new UpstreamError('unavailable', 'the service gave a token that no header can hold')
}

/**
 * Asks the service whether it is well, without a token: the answer counts most where none is given.
 * Throws UpstreamError.
 */
export async function checkHealth(
  { account, pacer, clock }: Pick<SessionOptions, 'account' | 'pacer' | 'clock'>,
  signal: AbortSignal,
): Promise<void> {
  const slot: SlotRequest = { kind: 'command', name: account.name, dueSinceMs: clock.now() }
  const path = '/firework/v4/healthz/'
  const request: TransportRequest = { method: 'GET', path, signal }
  const answer = await pacer.send(request, { slot, tier: 'basic', signal, maxWaitMs: healthSlotMs })
  if (answer.status >= 300) throw errorFromAnswer(answer, [])
  readAnswer(answer, z.unknown())
}

/** Secrets that must not appear in any message: the key, the token and the proxy's credentials. */
export function accountSecrets(account: AccountConfig, key: AccountKey, token?: Token): string[] {
  const proxy = revealProxy(account)
  const password = URL.parse(proxy)?.password ?? ''
  return [key.apiKey, token?.value ?? '', proxy, password, decodePassword(password)]
}

/** A file that cannot be read just now is told where a connection needs it. */
function revealProxy({ proxy }: AccountConfig): string {
  try {
    return proxy?.reveal() ?? ''
  } catch {
    return ''
  }
}

/** Returns the password as it is if not percent-encoded: the file may have changed meanwhile. */
function decodePassword(password: string): string {
  try {
    return decodeURIComponent(password)
  } catch {
    return password
  }
}

function toTransportRequest(call: Call, token: Token): TransportRequest {
  const { method, path, body, signal, isFile } = call
  const authorization = `Bearer ${token.value}`
  const maxBytes = chooseMaxBytes(call)
  const request: TransportRequest = { method, path, authorization, signal, maxBytes, isFile }
  return body === undefined ? request : { ...request, body }
}

function chooseMaxBytes({ slot, pageSize }: Call): number {
  if (slot.kind === 'command') return answerBytes.command
  return slot.kind === 'detail' || pageSize === 1 ? answerBytes.item : answerBytes.page
}

/** Returns a 2xx answer's body, parsed by `shape`. Throws UpstreamError `contract` on mismatch. */
export function readAnswer<T>(answer: Answer, shape: z.ZodType<T>): T {
  const { status } = answer
  const parsed = shape.safeParse(parseJson(answer))
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const place = issue?.path.join('.') || 'the answer'
  const message = `the answer has not the shape that the API describes, at ${place}: ${issue?.code}`
  throw new UpstreamError('contract', message, { status })
}

/** No answer of the API is nearly this deep; recursion through 100,000 would exhaust the stack. */
const maxDepth = 200

/** Replaces objects and lists deeper than `levels` with "…", in place. */
function truncateBelow(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) return '…'
  const members = value as Record<string, unknown>
  for (const key of Object.keys(members)) {
    const member = members[key]
    if (typeof member === 'object') members[key] = truncateBelow(member, levels - 1)
  }
  return value
}

function parseJson({ status, body }: Answer): unknown {
  try {
    return truncateBelow(JSON.parse(body) as unknown, maxDepth)
  } catch {
    const isHtml = looksLikeHtml(body)
    const what = isHtml ? 'is a web page' : 'is not JSON'
    const options = { status, fault: isHtml ? ('html' as const) : undefined }
    throw new UpstreamError('contract', `the answer ${what}, where the API gives JSON`, options)
  }
}

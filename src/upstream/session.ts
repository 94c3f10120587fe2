/**
 * Authorised requests of one account: a token, a turn, one retry after a 401. A key that stays refused
 * pauses the account.
 */
import type { z } from 'zod'
import type { Clock } from '../lib/clock.ts'
import { type AnswerLimits, commandLimits, daemonLimits, itemLimits } from './bounded-text.ts'
import type { AccountConfig } from './config.ts'
import { ServiceError } from './error.ts'
import { type Answer, failureOfAnswer, looksLikeHtml } from './failures.ts'
import type { Paced, Pacer, Turn } from './rate-limits.ts'
import { wireTokenGrant } from './resources/page.ts'
import type { AccountState, Credentials, Token, TokenCache } from './tokens.ts'
import type { TransportRequest } from './transport.ts'

export interface Call extends Paced {
  method: TransportRequest['method']
  path: string
  body?: unknown
  /** Items asked for, where the answer is a page of them. */
  pageSize?: number | undefined
  evenIfPaused?: boolean
}

interface SessionOptions {
  account: AccountConfig
  credentials: () => Credentials
  state: AccountState
  tokens: TokenCache
  pacer: Pacer
  clock: Clock
}

export interface Session {
  /** Any answer below 300, and a refusal that `isWelcome`; a ServiceError otherwise. */
  call(call: Call, isWelcome?: (answer: Answer) => boolean): Promise<Answer>
}

/** A fresh token refused is final; older ones may each have been revoked meanwhile. */
const mostTokens = 3
/** A renewal holds a lock of 15 s. */
const tokenTurnMs = 10_000

export function createSession(options: SessionOptions): Session {
  const { account, credentials, state, tokens, pacer, clock } = options

  async function accept(answer: Answer, secrets: readonly string[]): Promise<Answer> {
    if (answer.status >= 300) throw failureOfAnswer(answer, secrets)
    await state.reportSuccess()
    return answer
  }

  return {
    async call(asked, isWelcome = () => false) {
      if (!asked.evenIfPaused) await state.assertOpen()
      const startedMs = clock.monotonic()
      for (let used = 1; ; used += 1) {
        const token = await tokens.get(asked)
        const answer = await pacer.send(requestOf(asked, token), asked)
        if (isWelcome(answer)) return answer
        const secrets = [...secretsOf(account, credentials(), token), ...(asked.secrets ?? [])]
        if (answer.status !== 401) return accept(answer, secrets)
        await tokens.refuse(token)
        const isFinal = token.bornMs >= startedMs || used === mostTokens
        if (isFinal) throw await state.pause(failureOfAnswer(answer, secrets))
      }
    },
  }
}

type GenerateOptions = Omit<SessionOptions, 'tokens'>

/** Exchanges the API key for a token; a refusal pauses the account. */
export async function generateToken(
  options: GenerateOptions,
  signal: AbortSignal,
): Promise<string> {
  const { account, pacer, state, clock } = options
  const credentials = options.credentials()
  const turn: Turn = { kind: 'token', name: account.name, dueSinceMs: clock.now() }
  const path = '/tokens/generate'
  const request: TransportRequest = {
    method: 'POST',
    path,
    authorization: credentials.apiKey,
    signal,
  }
  if (account.tenantId !== undefined) request.body = { tenant_id: account.tenantId }
  const paced = { turn, tier: 'basic', signal, maxWaitMs: tokenTurnMs } as const
  const answer = await pacer.send(request, paced)
  if (answer.status < 300) return readAnswer(answer, wireTokenGrant).token
  const failure = failureOfAnswer(answer, secretsOf(account, credentials))
  throw failure.reason === 'auth' ? await state.pause(failure) : failure
}

/** What may not stand in any message: key, token, and the proxy's credentials. */
export function secretsOf(account: AccountConfig, key: Credentials, token?: Token): string[] {
  const proxy = account.proxy?.reveal() ?? ''
  const password = URL.parse(proxy)?.password ?? ''
  return [key.apiKey, token?.value ?? '', proxy, password, decoded(password)]
}

/** A file may have changed to something else since it was checked. */
function decoded(password: string): string {
  try {
    return decodeURIComponent(password)
  } catch {
    return password
  }
}

function requestOf(call: Call, token: Token): TransportRequest {
  const { method, path, body, signal, pageSize } = call
  const limits = { ...limitsOf(call), pageSize }
  const authorization = `Bearer ${token.value}`
  const request: TransportRequest = { method, path, authorization, signal, limits }
  return body === undefined ? request : { ...request, body }
}

function limitsOf({ turn, pageSize }: Call): AnswerLimits {
  if (turn.kind === 'command') return commandLimits
  return turn.kind === 'detail' || pageSize === 1 ? itemLimits : daemonLimits
}

/** The body of a 2xx answer in its shape; ServiceError `contract` where it is not that. */
export function readAnswer<T>(answer: Answer, shape: z.ZodType<T>): T {
  const { status } = answer
  const parsed = shape.safeParse(parseJson(answer))
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const place = issue?.path.join('.') || 'the answer'
  const message = `the answer has not the shape that the API describes, at ${place}: ${issue?.code}`
  throw new ServiceError('contract', message, { status })
}

/** Nothing of the API is nearly as deep; whoever walks through 100,000 levels runs out of stack. */
const maxDepth = 200

/** The value with "…" in place of what is deeper. */
function cutBelow(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) return '…'
  const members = value as Record<string, unknown>
  for (const key of Object.keys(members)) {
    const member = members[key]
    if (typeof member === 'object') members[key] = cutBelow(member, levels - 1)
  }
  return value
}

function parseJson({ status, body }: Answer): unknown {
  try {
    return cutBelow(JSON.parse(body) as unknown, maxDepth)
  } catch {
    const isHtml = looksLikeHtml(body)
    const what = isHtml ? 'is a web page' : 'is not JSON'
    const options = { status, fault: isHtml ? ('html' as const) : undefined }
    throw new ServiceError('contract', `the answer ${what}, where the API gives JSON`, options)
  }
}

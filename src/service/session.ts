/**
 * Authorised requests of one account: a token, a turn, one retry after a 401. A key that stays refused
 * pauses the account.
 */
import type { Clock } from '../runtime/clock.ts'
import type { AccountState } from './tokens/account-state.ts'
import type { AccountConfig } from './config.ts'
import type { Credentials } from './tokens/credentials.ts'
import { failureOfAnswer, type Answer } from './transport/failures.ts'
import type { Paced, Pacer } from './pacer.ts'
import type { Turn } from './pacing/pick-next.ts'
import { readAnswer } from './read-answer.ts'
import type { TokenCache } from './tokens/token-cache.ts'
import type { Token } from './tokens/token-store.ts'
import {
  commandLimits,
  daemonLimits,
  itemLimits,
  type AnswerLimits,
} from './transport/bounded-text.ts'
import type { TransportRequest } from './transport/transport.ts'
import { wireTokenGrant } from './wire/tokens.ts'

export interface Call extends Paced {
  method: TransportRequest['method']
  path: string
  body?: unknown
  /** Items asked for, where the answer is a page of them. */
  pageSize?: number | undefined
  evenIfPaused?: boolean
}

export interface SessionOptions {
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

export type GenerateOptions = Omit<SessionOptions, 'tokens'>

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

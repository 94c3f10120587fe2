/**
 * Access tokens for a mail server: OAuth 2.0 by client credentials (RFC 6749, 4.4), for XOAUTH2. One
 * token for all connections of the process, renewed beside the mails when three quarters of its life
 * are over. No error and no log names a token or the secret.
 */
import type { Outbound } from '../../lib/outbound-config.ts'
import { type Clock, withTimeout } from '../../lib/clock.ts'
import {
  createHttpTransport,
  errorFromAnswer,
  type HttpAnswer,
  type HttpTransport,
  isSuccess,
} from '../http.ts'
import { isAnswerLost, revealSecret, SinkError } from '../sink.ts'
import type { OAuthConfig } from './config.ts'

export interface AccessTokens {
  /** `isNew`: it was asked for just now. Throws SinkError. */
  get(signal: AbortSignal): Promise<{ token: string; isNew: boolean }>
  /** Called after the mail server refused it. */
  refuse(token: string): void
  close(): Promise<void>
}

interface Held {
  token: string
  renewAtMs: number
  endsAtMs: number
}

const receiver = 'the token server'
const requestTimeoutMs = 15_000

/** How long a token that still serves is kept after a new one was not to be had. */
const renewalPauseMs = 60_000

/** `outbound`: the sink's way out, which leads to the token server too. */
export function createAccessTokens(
  config: OAuthConfig,
  outbound: Outbound,
  clock: Clock,
): AccessTokens {
  const transport = createHttpTransport({
    outbound,
    allowPrivate: true,
    maxConnections: 1,
    receiver,
    readsAnswer: true,
  })
  const closing = new AbortController()
  let held: Held | undefined
  let flight: Promise<Held> | undefined

  async function renew(): Promise<Held> {
    const answer = await withTimeout(requestTimeoutMs, [closing.signal], (signal) =>
      askForToken(transport, config, signal),
    )
    const { token, lifeMs } = readToken(answer, clock.now())
    const nowMs = clock.monotonic()
    held = { token, renewAtMs: nowMs + lifeMs * 0.75, endsAtMs: nowMs + lifeMs * 0.98 }
    return held
  }

  return {
    async get(signal) {
      const old = held
      const nowMs = clock.monotonic()
      if (old && nowMs < old.renewAtMs) return { token: old.token, isNew: false }
      flight ??= renew().finally(() => (flight = undefined))
      if (!old || nowMs >= old.endsAtMs) {
        return { token: (await untilAborted(flight, signal)).token, isNew: true }
      }
      void flight.catch(() => (old.renewAtMs = clock.monotonic() + renewalPauseMs))
      return { token: old.token, isNew: false }
    },
    refuse(token) {
      if (held?.token === token) held = undefined
    },
    close() {
      closing.abort()
      return transport.close()
    },
  }
}

/** Others may wait for the same token: only this wait ends. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const giveUp = (): void => reject(unreached('the time was up'))
  signal.addEventListener('abort', giveUp)
  if (signal.aborted) giveUp()
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', giveUp)
  }
}

function unreached(why: string): SinkError {
  return new SinkError('unavailable', `${receiver} was not reached: ${why}`)
}

async function askForToken(
  transport: HttpTransport,
  { tokenUrl, clientId, clientSecret, scope }: OAuthConfig,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: revealSecret(clientSecret, 'client_secret'),
    scope,
  })
  const headers = {
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
    'user-agent': 'tocsin',
  }
  try {
    return await transport.post(new URL(tokenUrl), { headers, body: String(body) }, { signal })
  } catch (error) {
    // no mail was given away, so no answer about one can be lost
    if (error instanceof SinkError && !isAnswerLost(error.reason)) throw error
    throw unreached(error instanceof SinkError ? error.message : 'it broke off')
  }
}

/** RFC 6750, 2.1: anything else cannot stand in a login. */
const tokenPattern = /^[\w\-.~+/]+=*$/

const usualLifeMs = 3_600_000

function readToken(answer: HttpAnswer, nowMs: number): { token: string; lifeMs: number } {
  const fields = readFields(answer.body)
  if (!isSuccess(answer.status)) throw refusalOf(answer, fields, nowMs)
  const { access_token: token, expires_in: seconds } = fields
  if (typeof token !== 'string' || token === '') {
    throw new SinkError('misconfigured', `${receiver} answered without a token: correct token_url`)
  }
  if (!tokenPattern.test(token)) {
    throw new SinkError('unavailable', `${receiver} gave a token that no sign-in can hold`)
  }
  const lifeMs = Number(seconds) * 1000
  return { token, lifeMs: lifeMs > 0 ? lifeMs : usualLifeMs }
}

function readFields(body: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(body)) as Record<string, unknown>
  } catch {
    return {}
  }
}

/** By the words of RFC 6749, 5.2, as Microsoft Entra uses them: its numbers may change. */
const remedies: Record<string, string> = {
  invalid_client: 'client_secret is wrong or has expired: make a new one',
  unauthorized_client:
    'it knows no such application: correct client_id, or the tenant in token_url',
  invalid_request: 'correct token_url: the tenant in it may not exist',
  invalid_scope: 'correct scope: Microsoft 365 takes https://outlook.office365.com/.default',
}

/** The description may quote what was sent; of it only Microsoft's number is repeated. */
function refusalOf(answer: HttpAnswer, fields: Record<string, unknown>, nowMs: number): SinkError {
  const { status } = answer
  if (status === 429 || status >= 500) return errorFromAnswer(answer, { nowMs, receiver })
  const { error, error_description: description } = fields
  const word = typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? error : undefined
  if (word === undefined) {
    const said = `${receiver} answered ${status}: correct token_url`
    return new SinkError('misconfigured', said, { status })
  }
  const [number] = /\bAADSTS\d{1,10}\b/.exec(String(description)) ?? []
  const remedy = (Object.hasOwn(remedies, word) ? remedies[word] : undefined) ?? 'correct oauth'
  const codes = [status, word, number].filter((code) => code !== undefined).join(' ')
  return new SinkError('unauthorized', `${receiver} gives no token (${codes}): ${remedy}`, {
    status,
  })
}

/**
 * Access tokens for a mail server: OAuth 2.0 by client credentials (RFC 6749, 4.4), for XOAUTH2. No
 * error and no log names a token or the secret.
 */
import type { Clock } from '../../lib/clock.ts'
import type { Outbound } from '../../lib/config/outbound-config.ts'
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

const receiver = 'the token server'

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
  let held: { token: string; endsAtMs: number } | undefined
  return {
    async get(signal) {
      if (held && clock.monotonic() < held.endsAtMs) return { token: held.token, isNew: false }
      const answer = await askForToken(transport, config, signal)
      const { token, lifeMs } = readToken(answer, clock.now())
      held = { token, endsAtMs: clock.monotonic() + lifeMs * 0.9 }
      return { token, isNew: true }
    },
    refuse(token) {
      if (held?.token === token) held = undefined
    },
    close: () => transport.close(),
  }
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
    if (!(error instanceof SinkError && isAnswerLost(error.reason))) throw error
    throw new SinkError('unavailable', `${receiver} gave no answer: ${error.message}`)
  }
}

/** RFC 6750, 2.1: anything else cannot stand in a login. */
const tokenPattern = /^[\w\-.~+/]+=*$/

const usualLifeMs = 3_600_000

function readToken(answer: HttpAnswer, nowMs: number): { token: string; lifeMs: number } {
  const { status } = answer
  if (status === 429 || status >= 500) throw errorFromAnswer(answer, { nowMs, receiver })
  const { access_token: token, expires_in: seconds, ...said } = readFields(answer.body)
  if (!isSuccess(status) || typeof token !== 'string' || !tokenPattern.test(token)) {
    throw refusalOf(status, said)
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

/** The description may quote what was sent; of it only Microsoft's number is repeated. */
function refusalOf(status: number, said: Record<string, unknown>): SinkError {
  const [word] = /^[a-z_]{1,40}$/.exec(String(said['error'])) ?? []
  const [number] = /\bAADSTS\d{1,10}\b/.exec(String(said['error_description'])) ?? []
  const codes = [status, word, number].filter((code) => code !== undefined).join(' ')
  const remedy = 'correct oauth (docs/sinks.md, Microsoft 365)'
  return new SinkError('unauthorized', `${receiver} gives no token (${codes}); ${remedy}`, {
    status,
  })
}

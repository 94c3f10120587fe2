/** A pretend Slack: takes what an incoming webhook takes, refuses what it refuses. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { systemClock } from '../../runtime/clock.ts'
import type { SandboxSettings } from '../options.ts'
import type { RequestLog } from '../request-log.ts'
import { slackErrorOf } from './block-kit.ts'
import { headersOf } from './headers.ts'
import type { Inbox } from './received.ts'

export interface CatcherParts {
  settings: SandboxSettings
  log: RequestLog
  inbox: Inbox
}

export function addSlackCatcher(
  app: FastifyInstance,
  { settings, log, inbox }: CatcherParts,
): void {
  const pace = createPace(settings.slackLimit)

  app.post('/slack/*', (request, reply) => {
    const { path, body } = log.entryOf(request)
    const waitMs = pace.waitMs(path)
    if (waitMs > 0) {
      void reply.header('retry-after', String(Math.ceil(waitMs / 1000)))
      return say(reply, 429, 'rate_limited')
    }
    const error = slackErrorOf(body)
    if (error) return say(reply, 400, error)
    inbox.take({
      sink: 'slack',
      atMs: systemClock.now(),
      to: path,
      headers: headersOf(request),
      body: JSON.stringify(body),
      json: body,
      mail: null,
    })
    return say(reply, 200, 'ok')
  })
}

function say(reply: FastifyReply, status: number, word: string): FastifyReply {
  return reply.code(status).type('text/plain').send(word)
}

interface Pace {
  /** 0: let through, and counted; otherwise how long until the next is. */
  waitMs(key: string): number
}

/** A bucket of `burst` tokens per key, refilled at `perSecond`. */
function createPace({ perSecond, burst }: { perSecond: number; burst: number }): Pace {
  const buckets = new Map<string, { tokens: number; atMs: number }>()
  return {
    waitMs(key) {
      const now = systemClock.monotonic()
      const bucket = buckets.get(key) ?? { tokens: burst, atMs: now }
      const refilled = bucket.tokens + ((now - bucket.atMs) / 1000) * perSecond
      const tokens = Math.min(burst, refilled)
      const isFull = tokens >= 1
      buckets.set(key, { tokens: isFull ? tokens - 1 : tokens, atMs: now })
      return isFull ? 0 : ((1 - tokens) / perSecond) * 1000
    },
  }
}

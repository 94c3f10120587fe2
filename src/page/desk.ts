/** Answers questions and performs acts for a request, whether it wants HTML or JSON. */
import type { FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import { destinationLabels } from '../operator/recipients.ts'
import { recordAct } from '../operator/acts/record-act.ts'
import { inTime, Unanswered } from './access/in-time.ts'
import type { ActResult, ActRow, Actor } from './act.ts'
import { isRestricted, narrowLedgers, type PageEngine } from './asker.ts'
import type { User } from './access/user.ts'
import { PageError } from './page-error.ts'
import { type Question, readFields } from './question.ts'
import { SharedAnswers } from './http/shared-answers.ts'

export const apiRoot = '/api/v1'

export interface DeskOptions {
  version: string
  clock: Clock
  logger: Logger
  /** undefined: Redis has not been reached yet. */
  engine: () => PageEngine | undefined
}

export interface Desk {
  version: string
  /** Both throw PageError, and Unanswered where Redis hangs. */
  answer<Answer>(row: Question<z.ZodObject, Answer>, request: FastifyRequest): Promise<Answer>
  perform(row: ActRow, request: FastifyRequest): Promise<ActResult>
  /** The fields of a query. Throws PageError 400. */
  parse<Fields extends z.ZodObject>(fields: Fields, request: FastifyRequest): z.output<Fields>
  /** Waits for what is read, as long as an answer may take. Throws Unanswered. */
  awaitRead<Read>(read: Promise<Read>): Promise<Read>
  /** The names of the accounts that a user may see; of an engine that has not begun none. */
  visible(user: User): string[]
  /** Who asks, of the account that the request names. Throws PageError. */
  askerOf(request: FastifyRequest): Actor
}

/** As long as somebody who looks at a page does not notice. */
const sharedMs = 2_000

/** The slowest question of the largest ledger takes a fraction of it. */
const readPatienceMs = 10_000

/** Longer than the service, and a usual receiver of a test, may take. */
const actPatienceMs = 60_000

export function createDesk({ version, clock, logger, engine: findEngine }: DeskOptions): Desk {
  const shared = new SharedAnswers(clock, sharedMs)
  const parse: Desk['parse'] = (fields, { query, params }) =>
    readFields(fields, { ...(query as object), ...(params as object) })
  const awaitRead: Desk['awaitRead'] = (read) => inTime(clock, read, readPatienceMs)
  function askerOf(request: FastifyRequest): Actor {
    const engine = findEngine()
    if (engine === undefined) {
      throw new PageError('unavailable', 'Redis is not reached yet', 'look at the log')
    }
    const { config, store } = engine
    if (store.redis.status !== 'ready') {
      // what waited for it would be done when nobody waits
      throw new PageError('unavailable', 'Redis is not reached', 'try again')
    }
    const { user } = request
    const account = readAccount(request)
    const labels = destinationLabels(config)
    const narrow = narrowLedgers(store, user, account)
    return { user, config, store, labels, nowMs: clock.now(), engine, ...narrow }
  }
  return {
    version,
    askerOf,
    awaitRead,
    visible(user) {
      const { store } = findEngine() ?? {}
      return store ? narrowLedgers(store, user, undefined).visible : []
    },
    parse,
    async answer(row, request) {
      const asker = askerOf(request)
      const query = parse(row.query, request)
      if (row.isShared !== true) return awaitRead(row.ask(asker, query))
      const name = JSON.stringify([
        row.path,
        asker.accounts ?? 'all',
        isRestricted(asker),
        query,
        asker.engine.generation,
      ])
      return awaitRead(shared.read(name, () => row.ask(asker, query)))
    },
    async perform(row, request) {
      const about = { user: request.user.name, act: row.path }
      const onEnd = (said: ActResult | { err: unknown }): void => {
        shared.forget()
        if (!('err' in said)) logger.info({ ...about, ...said }, 'act by the page')
        else if (!(said.err instanceof PageError))
          logger.warn({ ...about, ...said }, 'an act by the page broke off')
      }
      const onUnnoted = (err: unknown): void =>
        logger.error({ ...about, err }, 'what came of an act is not recorded')
      return record(askerOf(request), row, { request, clock, onEnd, onUnnoted })
    },
  }
}

/** Of the query, or of the path; an empty one is none. */
function readAccount({ query, params }: FastifyRequest): string | undefined {
  const named = { ...(query as object), ...(params as object) } as { account?: unknown }
  return typeof named.account === 'string' && named.account !== '' ? named.account : undefined
}

interface Recorded {
  request: FastifyRequest
  clock: Clock
  /** Also of an act for which nobody waits any more. */
  onEnd: (said: ActResult | { err: unknown }) => void
  onUnnoted: (error: unknown) => void
}

/** By the name of the user, and of the account that it concerns; what cannot be read is refused. */
async function record(
  actor: Actor,
  row: ActRow,
  { request, clock, onEnd, onUnnoted }: Recorded,
): Promise<ActResult> {
  const { store, user, accounts } = actor
  const { params, body, url } = request
  const via: 'api' | 'page' = url.startsWith(apiRoot) ? 'api' : 'page'
  const parts = params as Readonly<Record<string, string>>
  const act = row.path.replaceAll(/:(\w+)/g, (_whole, name: string) => parts[name] ?? '')
  const account = accounts?.length === 1 ? (accounts[0] ?? '') : ''
  const note = { by: user.name, act, via, account, items: itemsOf(body) }
  const awaitNote = (noted: Promise<string>): Promise<string> => inTime(clock, noted)
  let hasBegun = false
  const acted = recordAct(store, { ...note, outcomeOf, awaitNote, onUnnoted }, async () => {
    hasBegun = true
    const result = await row.perform(
      actor,
      readFields(row.input, { ...(body as object), ...parts }),
    )
    return { result, isDone: result.done }
  })
  acted.then(onEnd, (err: unknown) => onEnd({ err }))
  return inTime(clock, acted, actPatienceMs).catch((error: unknown) => {
    if (!hasBegun || error instanceof PageError) throw error
    const problem =
      error instanceof Unanswered
        ? 'the act was begun and has not ended yet'
        : 'the act was begun and broke off; the log has the cause'
    throw new PageError('unclear', problem, 'look at Rules for what came of it')
  })
}

/** What an error means for the act that throws it. */
function outcomeOf(error: unknown): 'refused' | 'unclear' {
  return error instanceof PageError && error.reason !== 'unclear' ? 'refused' : 'unclear'
}

/** Those that its body names: a path names the rest. */
function itemsOf(body: unknown): string[] {
  const { item } = (body ?? {}) as { item?: unknown }
  return [item].flat().filter((one) => typeof one === 'string')
}

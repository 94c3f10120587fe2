/**
 * Sends messages, about one event or a summary, to a chat or channel of Microsoft Teams through the
 * webhook of a workflow. Accepted means that the workflow took the message: it answers 202 before
 * it posts, and only its run history tells whether the post succeeded.
 */
import type { SinkParts } from '../config.ts'
import { describeSink } from '../destinations.ts'
import {
  classifyStatus,
  createHttpTransport,
  errorFromAnswer,
  findDenial,
  isSuccess,
  readChatUrl,
} from '../http.ts'
import {
  type Delivery,
  type Receipt,
  type SendOptions,
  type Sink,
  type SinkReason,
} from '../sink.ts'
import { createDocumentRenderer } from '../templates.ts'
import type { TeamsConfig } from './config.ts'
import { cardText, renderTeams } from './teams-card.ts'

const teamsSendTimeoutMs = 15_000
const receiver = 'the workflow'
/** Teams asks for the charset where a card has emoji ("Format cards in Teams"). */
const headers = { 'content-type': 'application/json; charset=utf-8', 'user-agent': 'tocsin' }

/** Reads the URL at each send, so that it can change without a restart. */
export function createTeamsSink(config: TeamsConfig, parts: SinkParts): Sink {
  const { logger, clock } = parts
  const render = createDocumentRenderer(config, parts)
  const { name, allowPrivate } = config
  const transport = createHttpTransport({
    allowPrivate,
    outbound: config,
    maxConnections: 1,
    receiver,
    readsAnswer: true,
  })

  async function send(delivery: Delivery, options: SendOptions): Promise<Receipt> {
    const body = JSON.stringify(renderTeams(delivery, render))
    const answer = await transport.post(readChatUrl('teams', config), { headers, body }, options)
    const { status } = answer
    logger.debug({ sink: name, delivery: delivery.id, status }, 'teams workflow answered')
    const denial = isSuccess(status) ? (findDenial(answer.body) ?? findRelayed(answer.body)) : null
    if (denial === undefined) return { answer: describeAcceptance(status) }
    const code = readErrorCode(answer.body)
    const word = code || (denial?.word ?? '')
    const reason = reasonsByCode[code] ?? denial?.reason ?? classifyWorkflowStatus(status)
    throw errorFromAnswer(answer, { nowMs: clock.now(), reason, receiver, word, advice })
  }

  return {
    ...describeSink(config, 'people'),
    concurrency: 1,
    sendTimeoutMs: teamsSendTimeoutMs,
    send,
    reach: async (signal) => transport.reach(readChatUrl('teams', config), signal),
    preview(delivery) {
      const card = renderTeams(delivery, render)
      return { text: cardText(card), body: card, headers }
    },
    close: () => transport.close(),
  }
}

function describeAcceptance(status: number): string {
  return status === 202
    ? '202: the workflow took the message and posts it later; its run history shows whether it did'
    : `${status}: the workflow answered`
}

/**
 * Error codes of a workflow that say more than the status (docs/api-notes.md, Microsoft Teams). A
 * workflow that is off answers 400, which would otherwise make a dead letter of each message.
 */
const reasonsByCode: Readonly<Record<string, SinkReason>> = {
  WorkflowTriggerIsNotEnabled: 'misconfigured',
  WorkflowNotFound: 'misconfigured',
  MissingApiVersionParameter: 'misconfigured',
  DirectApiAuthorizationRequired: 'unauthorized',
  TriggerInputSchemaMismatch: 'invalid',
}

/** Webhooks of Teams answer 200 and tell in words that the chat behind them took nothing. */
function findRelayed(body: string): ReturnType<typeof findDenial> {
  const [, status] = /\bfailed with error\b.*?\bHTTP error (\d{3})\b/su.exec(body) ?? []
  if (status === undefined) return undefined
  return { reason: classifyStatus(Number(status)), word: `and passed on HTTP error ${status}` }
}

/** Returns the code of a workflow's error if it is one of those above; else an empty text. */
function readErrorCode(body: string): string {
  const [, code = ''] = /"code"\s*:\s*"(\w{2,60})"/u.exec(body) ?? []
  return Object.hasOwn(reasonsByCode, code) ? code : ''
}

/**
 * Most codes of a 400 speak of the workflow and not of the message, and no page lists them: one that
 * is not known gets a few tries and opens the circuit, so that not every event is a dead letter.
 */
function classifyWorkflowStatus(status: number): SinkReason {
  if (status === 404) return 'misconfigured'
  return status === 400 ? 'rejected' : classifyStatus(status)
}

const advice: Partial<Record<SinkReason, string>> = {
  misconfigured:
    '; turn the workflow on in Teams, or make a new one, and copy its whole URL into this sink',
  unauthorized:
    '; the signature in the URL does not hold (any more): copy the URL of the workflow again',
  rejected: '; look at the workflow in Teams: whether it is on, and what its run history says',
  invalid: '; the workflow takes no such message: it must post the cards of a webhook request',
  redirected: '; the URL is not that of a workflow',
  gone: '; make a new workflow and put its URL into this sink',
}

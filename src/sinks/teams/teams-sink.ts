/**
 * Sends messages, about one event or a summary, to a chat or channel of Microsoft Teams through the
 * webhook of a workflow. Accepted means that the workflow took the message: it answers 202 before
 * it posts, and only its run history tells whether the post succeeded.
 */
import type { SinkParts } from '../config.ts'
import {
  classifyStatus,
  type Denial,
  findDenial,
  type HttpAnswer,
  isSuccess,
  readChatUrl,
} from '../http.ts'
import { createHttpSink } from '../http-sink.ts'
import type { Sink, SinkReason } from '../sink.ts'
import { createDocumentRenderer } from '../templates/templates.ts'
import type { TeamsConfig } from './config.ts'
import { cardText, renderTeams } from './teams-card.ts'

/** Teams asks for the charset where a card has emoji ("Format cards in Teams"). */
const headers = { 'content-type': 'application/json; charset=utf-8', 'user-agent': 'tocsin' }

export function createTeamsSink(config: TeamsConfig, parts: SinkParts): Sink {
  const render = createDocumentRenderer(config, parts)
  const { post, ...sink } = createHttpSink(
    config,
    {
      audience: 'people',
      receiver: 'the workflow',
      concurrency: 1,
      readsAnswer: true,
      readUrl: () => readChatUrl('teams', config),
      judge,
      describeAcceptance,
      advice,
    },
    parts,
  )
  return {
    ...sink,
    send: async (delivery, options) =>
      post({ headers, body: JSON.stringify(renderTeams(delivery, render)) }, options),
    preview(delivery) {
      const card = renderTeams(delivery, render)
      return { text: cardText(card), body: card, headers }
    },
  }
}

function judge({ status, body }: HttpAnswer): Denial | undefined {
  const denial = isSuccess(status) ? findDenial(body) : {}
  if (denial === undefined) return undefined
  const code = readErrorCode(body)
  const reason = reasonsByCode[code] ?? denial.reason ?? classifyWorkflowStatus(status)
  return { reason, word: code || (denial.word ?? '') }
}

function describeAcceptance({ status }: HttpAnswer): string {
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

/** Returns the code of a workflow's error if it is one of those above; else an empty text. */
function readErrorCode(body: string): string {
  const [, code = ''] = /"code"\s*:\s*"(\w{2,60})"/u.exec(body) ?? []
  return Object.hasOwn(reasonsByCode, code) ? code : ''
}

/**
 * Most codes of a 400 speak of the workflow and not of the message, and no page lists them. One
 * that is not known gets a few tries and opens the circuit, so that not every event is a dead
 * letter.
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

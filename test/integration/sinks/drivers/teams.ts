/** A workflow of Teams answers with codes in a body. */
import { expect } from 'vitest'
import { objectsIn } from '../../../support/objects-in.ts'
import { findTeamsProblem } from '../../../../src/sandbox/receivers/teams-receiver.ts'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import type { SinkReason } from '../../../../src/sinks/sink.ts'
import { createTeamsSink } from '../../../../src/sinks/teams/teams-sink.ts'
import { type ScriptedAnswer, startHttpServer } from '../../../support/http-server.ts'
import {
  answered,
  type AnswerRow,
  httpReceiver,
  receivedChat,
  type Received,
  type SinkDriver,
} from './sink-driver.ts'

const workflow = '7f3e9a51c24b4d0e9a51c24b4d0e7f3e'
const signature = 'c04d9e77b1QxZv8hJt2Lq5Wm3Np6Rs9Tu0Vy4Xz7Ab1'
const path = `/workflows/${workflow}/triggers/manual/paths/invoke`

export const teams: SinkDriver<ScriptedAnswer> = {
  async start(environment) {
    const server = await startHttpServer()
    const accept = (): void =>
      server.script(({ body }) => {
        const problem = findTeamsProblem(body)
        return problem === null ? { status: 202 } : { status: 400, body: problem }
      })
    accept()
    const sink = createTeamsSink(
      {
        name: 'soc',
        type: 'teams',
        url: secretFromText(`${server.url}${path}?api-version=1&sv=1.0&sig=${signature}`),
        limitPerSecond: 2,
        allowPrivate: true,
        digest: undefined,
        reveal: false,
        templates: environment.templates,
      },
      environment,
    )
    return httpReceiver(server, {
      sink,
      secrets: [workflow, signature],
      accept,
      receivedOf: receivedChat,
      expectInert,
    })
  },
  answers: [
    ...codes('misconfigured', {
      WorkflowTriggerIsNotEnabled: 400,
      MissingApiVersionParameter: 400,
      WorkflowNotFound: 404,
      '': 404,
    }),
    ...codes('unauthorized', {
      DirectApiAuthorizationRequired: 401,
      AuthorizationFailed: 403,
      '': 401,
    }),
    ...codes('invalid', { TriggerInputSchemaMismatch: 400, '': 413 }),
    ...codes('rejected', { ACodeOfTomorrow: 400, '': 400 }),
    ...codes('unavailable', { NoResponse: 502, '': 503 }),
    answered(
      'a code that an object inherits',
      { status: 400, body: '{"error":{"code":"constructor"}}' },
      'rejected',
    ),
    answered('a workflow that is gone for good', { status: 410 }, 'gone'),
    answered(
      'a redirect',
      { status: 302, headers: { location: `/elsewhere?sig=${signature}` } },
      'redirected',
    ),
    answered(
      '429 with seconds',
      { status: 429, headers: { 'retry-after': '30' } },
      'rate_limited',
      30_000,
    ),
    answered('429 without Retry-After', { status: 429 }, 'rate_limited'),
  ],
}

/** Errors echo what they were asked with. */
function codes(reason: SinkReason, statuses: Record<string, number>): AnswerRow<ScriptedAnswer>[] {
  return Object.entries(statuses).map(([code, status]) => {
    const error = { code, message: `The workflow ${workflow} refuses ${signature}.` }
    const body = code === '' ? signature : JSON.stringify({ error })
    return answered(`${status} ${code || 'without a code'}`, { status, body }, reason)
  })
}

/** Nothing is interpreted: text stands in text runs alone, links lead to the service, nobody is mentioned. */
function expectInert({ text }: Received): void {
  expect(findTeamsProblem(text)).toBeNull()
  const objects = objectsIn(JSON.parse(text))
  const types = ['AdaptiveCard', 'RichTextBlock', 'TextRun', 'Container', 'Action.OpenUrl']
  expect(objects.some(({ type }) => type === 'TextRun')).toBe(true)
  expect(objects.some(({ url }) => url !== undefined)).toBe(true)
  for (const { type, text: shown, url, title, selectAction, entities } of objects) {
    if (type !== undefined && type !== 'message') expect(types).toContain(type)
    if (shown !== undefined) expect(type).toBe('TextRun')
    if (url !== undefined) expect(url).toMatch(/^https:\/\/app\.example\.com\/[^\s<>"]*$/)
    if (title !== undefined) expect(title).toBe('Open event')
    if (selectAction !== undefined) expect(shown).toBe('open')
    expect(entities).toBeUndefined()
  }
}

/**
 * Promises of a Teams sink: those of every sink, and of every sink for people (`summary-conformance.ts`, `template-conformance.ts`), with codes of a workflow as its `answers`.
 * To add a driver for another type, copy this file: `test/support/sink-conformance.ts` says what each member of a driver does.
 */
import { expect } from 'vitest'
import { objectsIn } from '../../../support/objects-in.ts'
import { findTeamsProblem } from '../../../../src/sandbox/receivers/teams-receiver.ts'
import { secretFromText } from '../../../../src/lib/config/secret.ts'
import type { SinkReason } from '../../../../src/sinks/sink.ts'
import { createTeamsSink } from '../../../../src/sinks/teams/teams-sink.ts'
import { startHttpServer, type ScriptedAnswer } from '../../../support/http-server.ts'
import {
  describeSinkConformance,
  type AnswerRow,
  type Received,
  type SinkConformance,
  type SinkDriver,
} from '../../../support/sink-conformance.ts'
import { describeSummaryConformance } from '../../../support/summary-conformance.ts'
import { describeTemplateConformance } from '../../../support/template-conformance.ts'

interface TeamsDriver extends SinkDriver {
  answer(answer: ScriptedAnswer): void
}

const workflow = '7f3e9a51c24b4d0e9a51c24b4d0e7f3e'
const signature = 'c04d9e77b1QxZv8hJt2Lq5Wm3Np6Rs9Tu0Vy4Xz7Ab1'
const path = `/workflows/${workflow}/triggers/manual/paths/invoke`

const suite: SinkConformance<TeamsDriver> = {
  name: 'the Teams sink',
  async create(environment) {
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
    return {
      sink,
      secrets: [workflow, signature],
      async accept() {
        accept()
        await server.listen()
      },
      answerLost: () => server.script('cut'),
      hang: () => server.script('hang'),
      refuse: () => server.refuse(),
      answer: (answer) => server.script(answer),
      received: () => server.requests.map(({ body }) => receivedOf(body)),
      openConnections: () => server.openConnections(),
      expectInert,
      stop: () => server.stop(),
    }
  },
  answers: [
    codes('misconfigured', {
      WorkflowTriggerIsNotEnabled: 400,
      MissingApiVersionParameter: 400,
      WorkflowNotFound: 404,
      '': 404,
    }),
    codes('unauthorized', {
      DirectApiAuthorizationRequired: 401,
      AuthorizationFailed: 403,
      '': 401,
    }),
    codes('invalid', { TriggerInputSchemaMismatch: 400, '': 413 }),
    codes('rejected', { ACodeOfTomorrow: 400, '': 400 }),
    codes('unavailable', { NoResponse: 502, '': 503 }),
    {
      title: 'a code that an object inherits',
      arrange: (driver: TeamsDriver) =>
        driver.answer({ status: 400, body: '{"error":{"code":"constructor"}}' }),
      reason: 'rejected' as const,
    },
    {
      title: 'a workflow that is gone for good',
      arrange: (driver: TeamsDriver) => driver.answer({ status: 410 }),
      reason: 'gone' as const,
    },
    {
      title: 'a redirect',
      arrange: (driver: TeamsDriver) =>
        driver.answer({ status: 302, headers: { location: `/elsewhere?sig=${signature}` } }),
      reason: 'redirected' as const,
    },
    {
      title: '429 with seconds',
      arrange: (driver: TeamsDriver) =>
        driver.answer({ status: 429, headers: { 'retry-after': '30' } }),
      reason: 'rate_limited' as const,
      retryAfterMs: 30_000,
    },
    {
      title: '429 without Retry-After',
      arrange: (driver: TeamsDriver) => driver.answer({ status: 429 }),
      reason: 'rate_limited' as const,
    },
  ].flat(),
}

describeSinkConformance(suite)
describeSummaryConformance(suite)
describeTemplateConformance(suite)

/** Errors echo what they were asked with. */
function codes(reason: SinkReason, statuses: Record<string, number>): AnswerRow<TeamsDriver>[] {
  return Object.entries(statuses).map(([code, status]) => ({
    title: `${status} ${code || 'without a code'}`,
    arrange: (driver) => {
      const error = { code, message: `The workflow ${workflow} refuses ${signature}.` }
      driver.answer({ status, body: code === '' ? signature : JSON.stringify({ error }) })
    },
    reason,
  }))
}

function receivedOf(body: string): Received {
  return {
    id: /delivery ([a-z0-9]+)/.exec(body)?.[1] ?? '',
    text: body,
    saysRepeat: body.includes('May be a repeat'),
    saysTest: body.includes('TEST'),
  }
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

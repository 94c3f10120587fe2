/** A scripted server that takes and refuses events by the rules of the sandbox's PagerDuty. */
import {
  findPagerDutyErrors,
  pagerDutyRefusal,
} from '../../src/sandbox/receivers/pagerduty-receiver.ts'
import { startHttpServer, type HttpServer, type ScriptedAnswer } from './http-server.ts'

export interface PagerDutyEvent {
  routing_key: string
  event_action: string
  dedup_key: string
  client: string
  payload: {
    summary: string
    source: string
    severity: string
    timestamp: string
    component?: string
    group?: string
    class?: string
    custom_details: Record<string, string | string[]>
  }
  links: { href: string; text: string }[]
}

export interface PagerDutyReceiver extends HttpServer {
  /** Every event taken whole, whatever the answer, oldest first. */
  events(): PagerDutyEvent[]
  /** Answers by the rules of the API again. */
  judge(): void
}

export async function startPagerDutyReceiver(routingKey: string): Promise<PagerDutyReceiver> {
  const server = await startHttpServer()
  const judge = (): void =>
    server.script(({ method, path, headers, body }): ScriptedAnswer => {
      if (method !== 'POST' || path !== '/v2/enqueue') return { status: 404 }
      const isJson = headers['content-type'] === 'application/json'
      const errors = isJson ? findPagerDutyErrors(body, routingKey) : ['not application/json']
      if (errors.length > 0) return refusal(errors)
      const { dedup_key: key } = JSON.parse(body) as PagerDutyEvent
      const answer = { status: 'success', message: 'Event processed', dedup_key: key }
      return { status: 202, body: JSON.stringify(answer) }
    })
  judge()
  return {
    ...server,
    judge,
    events: () => server.requests.map(({ body }) => JSON.parse(body) as PagerDutyEvent),
  }
}

/** The documented answer to an invalid event. */
export function refusal(errors: readonly string[]): ScriptedAnswer {
  return { status: 400, body: JSON.stringify(pagerDutyRefusal(errors)) }
}

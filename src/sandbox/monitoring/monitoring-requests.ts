/** Assets, matching policies and alerts over HTTP. */
import type { FastifyInstance, HTTPMethods, RouteHandlerMethod } from 'fastify'
import { grantOf } from '../api/gate.ts'
import type { Tokens } from '../api/tokens.ts'
import type { History } from '../history/history.ts'
import type { SandboxSettings } from '../options.ts'
import type { RequestLog } from '../request-log.ts'
import { alertRoutes } from './alerts.ts'
import { assetRoutes } from './asset-requests.ts'
import type { Monitoring } from './monitoring.ts'
import { assignmentRoutes } from './assignment-requests.ts'
import { policyRoutes } from './policy-requests.ts'
import { Refusal } from './refusal.ts'

/** What a route gets to see of a request. */
export interface Asked {
  tenantId: number
  organizationId: number
  params: Record<string, string>
  query: unknown
  body: unknown
}

/** A route, and what it answers as JSON; throws a Refusal where it does not. */
export interface MonitoringRoute {
  method: HTTPMethods
  path: string
  answer: (asked: Asked) => unknown
  /** Nothing but public material knows it (facts.md 6). */
  isUndescribed?: true
}

export interface MonitoringParts {
  settings: SandboxSettings
  history: History
  monitoring: Monitoring
}

const spellings = { underscore: 'matching_policies', hyphen: 'matching-policies' } as const

export function addMonitoring(
  app: FastifyInstance,
  parts: MonitoringParts & { log: RequestLog; tokens: Tokens },
): void {
  const { settings, log, tokens } = parts
  const handlerOf = ({ answer }: MonitoringRoute): RouteHandlerMethod =>
    answering((request) => {
      const grant = grantOf(request, tokens)
      return answer({
        // The gate lets no request through without a grant.
        tenantId: grant?.tenantId ?? 0,
        organizationId: grant?.organizationId ?? 0,
        params: request.params as Record<string, string>,
        query: request.query,
        body: log.entryOf(request).body,
      })
    })

  for (const route of [...assetRoutes(parts), ...alertRoutes(parts)]) {
    app.route({ method: route.method, url: route.path, handler: handlerOf(route) })
  }
  for (const [spelling, word] of Object.entries(spellings)) {
    const base = `/firework/v4/${word}`
    if (settings.policyPaths !== 'both' && settings.policyPaths !== spelling) {
      for (const url of [base, `${base}/*`]) app.all(url, plain(404, 'Not Found'))
      continue
    }
    for (const route of [...policyRoutes(parts), ...assignmentRoutes(parts)]) {
      const isThere = settings.undescribed || !route.isUndescribed
      const handler = isThere ? handlerOf(route) : plain(405, 'Method Not Allowed')
      app.route({ method: route.method, url: base + route.path, handler })
    }
  }
}

function answering(
  answer: (request: Parameters<RouteHandlerMethod>[0]) => unknown,
): RouteHandlerMethod {
  return (request, reply) => {
    try {
      const body = JSON.stringify(answer(request))
      return reply.type('application/json').send(body)
    } catch (error) {
      if (error instanceof Refusal) return error.answer(reply)
      throw error
    }
  }
}

/** As the framework behind the real service answers for what it has no route. */
function plain(status: number, detail: string): RouteHandlerMethod {
  return (_request, reply) => reply.code(status).send({ detail })
}

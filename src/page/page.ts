/**
 * The page and its API: what the daemon knows, for whoever has no shell. A Fastify plugin; nothing in
 * it answers before the door has said who asks.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics/metrics.ts'
import type { HttpConfig } from './http/config.ts'
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import { accessPlugin } from './access/access-plugin.ts'
import type { Render } from './access/access.ts'
import { addApi } from './api.ts'
import type { PageEngine } from './asker.ts'
import { createDesk } from './desk.ts'
import { inLabels, refusedForm } from './output/forms.ts'
import { addPages, pageContext, type PagesOptions } from './pages.ts'
import { createRenderer } from './output/render.ts'
import type { ErrorData, ViewData } from './output/view-data.ts'
import { PageError } from './page-error.ts'

export interface PageOptions {
  version: string
  /** Its address may hold a name and a password. */
  isDemo?: boolean | undefined
  redis: Redis
  keys: Keys
  clock: Clock
  logger: Logger
  metrics: Pick<Metrics, 'httpRefusalsTotal'>
  /** The configuration that is in force now. */
  http: () => HttpConfig
  /** undefined: Redis has not been reached yet. */
  engine: () => PageEngine | undefined
}

export interface Page {
  routes: FastifyPluginAsync
  /** What a browser is shown that asks for what there is not. */
  notFound: () => string
}

export function createPage(options: PageOptions): Page {
  const renderer = createRenderer()
  const pages = { desk: createDesk(options), renderer, now: () => options.clock.now() }
  const routes: FastifyPluginAsync = async (server) => {
    await server.register(
      accessPlugin({ ...options, render: createRefusalRenderer(pages, options) }),
    )
    addStatic(server)
    await server.register(async (scope) => {
      scope.setErrorHandler(answerProblem)
      addApi(scope, pages.desk)
    })
    await server.register(async (scope) => {
      scope.setErrorHandler((error, request, reply) => {
        if (!(error instanceof PageError)) throw error
        return reply
          .code(error.status)
          .type('text/html; charset=utf-8')
          .send(renderError(pages, describeRefusal(error, request), request))
      })
      addPages(scope, pages)
    })
  }
  const notFound = (): string =>
    renderError(pages, { status: 404, title: 'Not found', detail: 'There is no such page.' })
  return { routes, notFound }
}

type Refused = Pick<ErrorData, 'status' | 'title' | 'detail'> & Partial<ErrorData>

/** To whoever asks, in their navigation; without `request` to whoever it is. */
function renderError(pages: PagesOptions, refused: Refused, request?: FastifyRequest): string {
  const page = pageContext(pages, { title: refused.title, view: 'error' }, request)
  return pages.renderer.render('error', { remedy: null, back: '/', ...refused, page })
}

/** Fields bear the labels of their form. */
function describeRefusal(error: PageError, request: FastifyRequest): Refused {
  const { status, title, message, remedy } = error
  const said = { detail: `${inLabels(message)}.`, remedy: remedy ? inLabels(remedy) : null }
  return { status, title, ...said, back: refusedForm(request, message) }
}

/** RFC 9457. */
function answerProblem(error: Error, _request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (!(error instanceof PageError)) throw error
  const { status, title, message: detail, remedy } = error
  const problem = { type: 'about:blank', title, status, detail, ...(remedy && { remedy }) }
  return reply.code(status).type('application/problem+json').send(JSON.stringify(problem))
}

/** The pages of the door: the form to sign in, and refusals. */
function createRefusalRenderer(pages: PagesOptions, { isDemo = false }: PageOptions): Render {
  return (view: string, data: object, request?: FastifyRequest) => {
    if (view === 'sign-in') {
      const form = { problem: null, demo: isDemo, ...data } as ViewData['sign-in']
      const page = pageContext(pages, { title: 'Sign in', view: 'sign-in' })
      return pages.renderer.render('sign-in', { ...form, page })
    }
    const said = data as { status: number; detail: string }
    const title = said.status === 404 ? 'Not found' : 'Refused'
    const back = request ? refusedForm(request) : '/'
    return renderError(pages, { ...said, title, back }, request)
  }
}

const files = {
  'tocsin.css': 'text/css; charset=utf-8',
  'tocsin.js': 'text/javascript; charset=utf-8',
  'tocsin.svg': 'image/svg+xml',
} as const

/** Read once; a new version of the daemon has new ones. */
function addStatic(server: FastifyInstance): void {
  for (const [name, type] of Object.entries(files)) {
    const content = readFileSync(join(import.meta.dirname, 'static', name))
    server.get(`/static/${name}`, { config: { access: 'public' } }, async (_request, reply) =>
      reply.type(type).send(content),
    )
  }
}

/**
 * The page and its API: what the daemon knows, for whoever has no shell. A Fastify plugin; nothing in
 * it answers before the door has said who asks.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../lib/clock.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import type { HttpConfig } from '../ops/config.ts'
import type { Redis } from '../redis/connection.ts'
import type { Keys } from '../redis/keys.ts'
import { accessPlugin } from './access/access-plugin.ts'
import type { Render } from './access/access.ts'
import { addApi } from './api.ts'
import type { PageEngine } from './asker.ts'
import { createDesk } from './desk.ts'
import { addPages } from './pages.ts'
import { createRenderer, type Renderer } from './render.ts'
import type { PageContext, View, ViewData } from './view-data.ts'
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
  const desk = createDesk(options)
  const routes: FastifyPluginAsync = async (server) => {
    await server.register(
      accessPlugin({ ...options, render: createRefusalRenderer(renderer, options) }),
    )
    addStatic(server)
    await server.register(async (scope) => {
      scope.setErrorHandler(answerProblem)
      addApi(scope, desk)
    })
    await server.register(async (scope) => {
      scope.setErrorHandler((error, _request, reply) => {
        if (!(error instanceof PageError)) throw error
        const { status, title, message, remedy } = error
        const data = { status, title, detail: `${message}.`, remedy: remedy ?? null }
        return reply
          .code(status)
          .type('text/html; charset=utf-8')
          .send(renderer.render('error', { ...data, page: barePage(options, title, 'error') }))
      })
      addPages(scope, { desk, renderer, now: () => options.clock.now() })
    })
  }
  const title = 'Not found'
  const detail = 'There is no such page.'
  const notFound = (): string =>
    renderer.render('error', {
      status: 404,
      title,
      detail,
      remedy: null,
      page: barePage(options, title, 'error'),
    })
  return { routes, notFound }
}

/** RFC 9457. */
function answerProblem(error: Error, _request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (!(error instanceof PageError)) throw error
  const { status, title, message: detail, remedy } = error
  const problem = { type: 'about:blank', title, status, detail, ...(remedy && { remedy }) }
  return reply.code(status).type('application/problem+json').send(JSON.stringify(problem))
}

/** Of whoever is not signed in, or where nothing else is known. */
function barePage({ version, clock }: PageOptions, title: string, view: View): PageContext {
  return {
    title,
    view,
    path: '/',
    user: null,
    signed_in: false,
    account: null,
    accounts: [],
    version,
    as_of: new Date(clock.now()).toISOString(),
    tokens: {},
  }
}

/** The pages of the door: the form to sign in, and refusals. */
function createRefusalRenderer({ render }: Renderer, options: PageOptions): Render {
  return (view: string, data: object) => {
    if (view === 'sign-in') {
      const form = { problem: null, demo: options.isDemo === true, ...data } as ViewData['sign-in']
      return render('sign-in', { ...form, page: barePage(options, 'Sign in', 'sign-in') })
    }
    const { status, detail } = data as { status: number; detail: string }
    const title = status === 404 ? 'Not found' : 'Refused'
    return render('error', {
      status,
      title,
      detail,
      remedy: null,
      page: barePage(options, title, 'error'),
    })
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

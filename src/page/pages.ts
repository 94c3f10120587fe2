/** The views and their acts, in HTML. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Asker } from './asker.ts'
import { issueFormToken } from './access/form-token.ts'
import { localPath } from './access/sign-in.ts'
import type { Desk } from './desk.ts'
import { createForms, type Forms } from './forms.ts'
import {
  furnishEvent,
  furnishMessage,
  furnishNotTold,
  furnishNow,
  furnishRules,
} from './furnish.ts'
import type { Question } from './question.ts'
import { eventQuestion } from './questions/event.ts'
import { messageQuestion } from './questions/message.ts'
import { itemsQuestion } from './questions/not-told.ts'
import { rulesQuestion } from './questions/rules.ts'
import { searchQuestion } from './questions/search.ts'
import { statusQuestion } from './questions/state.ts'
import { tenantsQuestion } from './questions/tenants.ts'
import { messagesQuestion, readMessages, toldQuery } from './questions/told.ts'
import { messagesCsv } from './csv.ts'
import type { Renderer } from './render.ts'
import { acts } from './tables.ts'
import type { View, ViewData } from './view-data.ts'

interface ViewRow {
  path: string
  view: View
  question: Question
  title: (answer: never) => string
  /** Adds what may be done; left out: nothing. */
  furnish?: (answer: never, asker: Asker, forms: Forms) => object
}

function row<Answer>(
  path: string,
  view: View,
  about: {
    question: { ask: (...asked: never[]) => Promise<Answer> }
    title: (answer: Answer) => string
    furnish?: (answer: Answer, asker: Asker, forms: Forms) => object
  },
): ViewRow {
  return { path, view, ...about } as unknown as ViewRow
}

const views: readonly ViewRow[] = [
  row('/', 'now', {
    question: statusQuestion,
    title: ({ status }) => `Now: ${status}`,
    furnish: furnishNow,
  }),
  row('/told', 'told', { question: messagesQuestion, title: () => 'Told' }),
  row('/messages/:id', 'message', {
    question: messageQuestion,
    title: ({ recipient }) => `Message to ${recipient}`,
    furnish: furnishMessage,
  }),
  row('/events/:account/:id', 'event', {
    question: eventQuestion,
    title: ({ title, uid }) => title ?? uid,
    furnish: furnishEvent,
  }),
  row('/not-told', 'not-told', {
    question: itemsQuestion,
    title: () => 'Not told',
    furnish: furnishNotTold,
  }),
  row('/tenants', 'tenants', { question: tenantsQuestion, title: () => 'Tenants' }),
  row('/search', 'search', {
    question: searchQuestion,
    title: ({ query }) => (query === '' ? 'Search' : `Search: ${query}`),
  }),
]

export interface PagesOptions {
  desk: Desk
  renderer: Renderer
  /** A path of the page has a page; of the API JSON. */
  now: () => number
}

export function addPages(server: FastifyInstance, options: PagesOptions): void {
  const { desk } = options
  for (const { path, view, question, title, furnish } of views) {
    server.get(path, async (request, reply) => {
      const asker = desk.askerOf(request)
      const answer = (await desk.answer(question, request)) as never
      const forms = createForms(request, request.url)
      const data = furnish ? furnish(answer, asker, forms) : answer
      return send(reply, options, { view, title: title(answer), data, asker, forms })
    })
  }
  server.get('/rules', async (request, reply) => {
    const asker = desk.askerOf(request)
    const forms = createForms(request, '/rules')
    const answer = await desk.answer(rulesQuestion, request)
    const query = request.query as Record<string, unknown>
    const data = await desk.awaitRead(furnishRules(answer, asker, { forms, query }))
    return send(reply, options, { view: 'rules', title: 'Rules', data, asker, forms })
  })
  server.get('/told.csv', async (request, reply) => {
    const asker = desk.askerOf(request)
    const query = desk.parse(toldQuery, request)
    const rows = { ...query, limit: rowsAtOnce }
    const csv = await messagesCsv((cursor) =>
      desk.awaitRead(readMessages(asker, { ...rows, cursor })),
    )
    const name = `tocsin-told-${new Date(options.now()).toISOString().slice(0, 10)}.csv`
    return reply
      .type('text/csv; charset=utf-8')
      .header('content-disposition', `attachment; filename="${name}"`)
      .send(csv)
  })
  for (const act of acts) {
    server.post(act.path, async (request, reply) => {
      const asker = desk.askerOf(request)
      const { done, said } = await desk.perform(act, request)
      const title = done ? 'Done' : 'Not done'
      const data = { title, said, back: readBack(request) }
      const forms = createForms(request, '/')
      return send(reply, options, { view: 'done', title, data, asker, forms })
    })
  }
}

/** Of a file; a page shows fewer. */
const rowsAtOnce = 200

function readBack({ body }: FastifyRequest): string {
  const { back } = (body ?? {}) as { back?: unknown }
  const [first] = [back].flat() // a form with two acts has one for each
  return localPath(typeof first === 'string' ? first : '/')
}

interface Shown {
  view: View
  title: string
  data: object
  asker: Asker
  forms: Forms
}

function send(
  reply: FastifyReply,
  { desk, renderer, now }: PagesOptions,
  { view, title, data, asker, forms }: Shown,
): FastifyReply {
  const { request } = reply
  const { session } = request
  const paths = [...forms.paths, '/sign-out']
  const tokens = session ? paths.map((path) => [path, issueFormToken(session, path)]) : []
  const { accounts, user, visible } = asker
  const page = {
    title,
    view,
    path: pathOf(request),
    user: { name: user.name, role: user.role },
    signed_in: session !== undefined && session.isByProxy !== true,
    account: isNarrowed(request) && visible.length > 1 ? (accounts?.[0] ?? null) : null,
    accounts: visible,
    version: desk.version,
    as_of: new Date(now()).toISOString(),
    tokens: Object.fromEntries(tokens) as Record<string, string>,
  }
  const html = renderer.render(view, { ...data, page } as ViewData[View] & { page: typeof page })
  return reply.type('text/html; charset=utf-8').send(html)
}

/** By its query; an address that holds an account in its path narrows no other view. */
function isNarrowed({ query }: FastifyRequest): boolean {
  const { account } = query as { account?: unknown }
  return typeof account === 'string' && account !== ''
}

function pathOf({ url }: FastifyRequest): string {
  return url.split('?', 1)[0] ?? '/'
}

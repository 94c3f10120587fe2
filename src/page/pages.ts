/** The views and their acts, in HTML. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Asker } from './asker.ts'
import { issueFormToken } from './access/form-token.ts'
import { nobody } from './access/user.ts'
import type { Desk } from './desk.ts'
import { createForms, type Forms, readBack } from './output/forms.ts'
import {
  furnishEvent,
  furnishMessage,
  furnishNotTold,
  furnishNow,
  furnishRules,
} from './output/furnish.ts'
import type { Question } from './question.ts'
import { eventQuestion } from './questions/event.ts'
import { messageQuestion } from './questions/message.ts'
import { itemsQuestion } from './questions/not-told.ts'
import { rulesQuestion } from './questions/rules.ts'
import { searchQuestion } from './questions/search.ts'
import { statusQuestion } from './questions/state.ts'
import { tenantsQuestion } from './questions/tenants.ts'
import { messagesQuestion, readMessages, toldQuery } from './questions/told.ts'
import { messagesCsv } from './output/csv.ts'
import type { Renderer } from './output/render.ts'
import { acts } from './tables.ts'
import type { PageContext, View, ViewData } from './output/view-data.ts'

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
      return send(reply, options, { view, title: title(answer), data, forms })
    })
  }
  server.get('/rules', async (request, reply) => {
    const asker = desk.askerOf(request)
    const query = request.query as Record<string, unknown>
    const back = readBack({ body: null, query: { back: '/rules', ...query } })
    const forms = createForms(request, back)
    const answer = await desk.answer(rulesQuestion, request)
    const data = await desk.awaitRead(furnishRules(answer, asker, { forms, query }))
    return send(reply, options, { view: 'rules', title: 'Rules', data, forms })
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
      const { done, said, url = null } = await desk.perform(act, request)
      const title = done ? 'Done' : 'Not done'
      const back = readBack(request)
      const data = { title, said, touched: url === back ? null : url, back }
      return send(reply, options, { view: 'done', title, data, forms: createForms(request, '/') })
    })
  }
}

/** Of a file; a page shows fewer. */
const rowsAtOnce = 200

interface Shown {
  view: View
  title: string
  data: object
  forms: Forms
}

function send(
  reply: FastifyReply,
  options: PagesOptions,
  { view, title, data, forms }: Shown,
): FastifyReply {
  const { request } = reply
  const page = pageContext(options, { view, title, paths: forms.paths }, request)
  const shown = { ...data, page } as ViewData[View] & { page: typeof page }
  return reply.type('text/html; charset=utf-8').send(options.renderer.render(view, shown))
}

/** Who asks, and what they may go to; without `request` a stranger. */
export function pageContext(
  { desk, now }: PagesOptions,
  { view, title, paths = [] }: Pick<PageContext, 'view' | 'title'> & { paths?: Iterable<string> },
  request?: FastifyRequest,
): PageContext {
  const known = request?.user === nobody ? undefined : request
  const { user, session, url = '/' } = known ?? {}
  const accounts = user ? desk.visible(user) : []
  // an address that holds an account in its path narrows no other view
  const { account } = (known?.query ?? {}) as { account?: string }
  const tokens = session
    ? [...paths, '/sign-out'].map((path) => [path, issueFormToken(session, path)])
    : []
  return {
    title,
    view,
    path: url.split('?', 1)[0] ?? '/',
    user: user ? { name: user.name, role: user.role } : null,
    signed_in: session !== undefined && session.isByProxy !== true,
    account: (accounts.length > 1 && accounts.find((one) => one === account)) || null,
    accounts,
    version: desk.version,
    as_of: new Date(now()).toISOString(),
    tokens: Object.fromEntries(tokens) as Record<string, string>,
  }
}

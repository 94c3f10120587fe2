/**
 * A mock workflow of Microsoft Teams, by the published rules (docs/api-notes.md, Microsoft Teams).
 * It knows the message that its trigger takes, the size of a message, and of Adaptive Cards the
 * elements that Tocsin sends. The real one answers 202 and fails afterwards; this one says at once
 * what is wrong.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import { createRateLimit, parseJson, readRequest, type ReceiverParts } from './received.ts'

export function addTeamsReceiver(app: FastifyInstance, { log, inbox }: ReceiverParts): void {
  const rateLimit = createRateLimit({ perSecond: 4, burst: 4 })

  app.post('/teams/*', (request, reply) => {
    const message = readRequest(request, log)
    const { sig } = log.entryFor(request).query
    if (typeof sig !== 'string' || sig === '') {
      return refuse(reply, 401, 'DirectApiAuthorizationRequired', 'the URL has no signature')
    }
    const waitMs = rateLimit.waitMs(message.to)
    if (waitMs > 0) {
      void reply.header('retry-after', String(Math.ceil(waitMs / 1000)))
      return refuse(reply, 429, 'TooManyRequests', 'too many requests')
    }
    const problem = findTeamsProblem(message.body)
    if (problem !== null) return refuse(reply, 400, 'TriggerInputSchemaMismatch', problem)
    inbox.take({ sink: 'teams', ...message })
    return reply.code(202).send()
  })
}

function refuse(reply: FastifyReply, status: number, code: string, message: string): FastifyReply {
  return reply
    .code(status)
    .type('application/json')
    .send(JSON.stringify({ error: { code, message } }))
}

/** Message size limit of the action "Post card in a chat or channel". */
const maxBytes = 28 * 1024
/** Teams, "Cards": a card shows at most six actions. */
const maxActions = 6

const text = z
  .string()
  .min(1)
  .refine((value) => value.isWellFormed(), 'not well-formed')

const openUrl = z.strictObject({
  type: z.literal('Action.OpenUrl'),
  title: text.max(60).optional(),
  url: z.string().regex(/^https?:\/\/[\x21-\x7e]+$/u, 'not a link'),
})

const look = {
  color: z.enum(['default', 'accent', 'warning', 'attention']).optional(),
  fontType: z.literal('monospace').optional(),
  isSubtle: z.boolean().optional(),
  size: z.enum(['small', 'medium']).optional(),
  weight: z.literal('bolder').optional(),
}

const textRun = z.strictObject({
  ...look,
  type: z.literal('TextRun'),
  text: text
    // a paragraph shows line ends as blanks
    .regex(/^[^\r\n]*$/u, 'a line end in a text run')
    // although the schema knows neither in a text run, the renderers of phones do
    .refine((value) => !value.includes(']('), 'a link that iPhones show')
    .refine((value) => !/\{\{(?:DATE|TIME)\(/u.test(value), 'a date that phones write'),
  selectAction: openUrl.optional(),
})

const richTextBlock = z.strictObject({
  type: z.literal('RichTextBlock'),
  inlines: z.array(textRun).min(1),
  spacing: z.enum(['none', 'small', 'medium']).optional(),
  separator: z.boolean().optional(),
})

const container = z.strictObject({
  id: z.string().min(1).optional(),
  type: z.literal('Container'),
  style: z.literal('emphasis').optional(),
  items: z.array(richTextBlock).min(1),
})

const card = z.strictObject({
  $schema: z.literal('http://adaptivecards.io/schemas/adaptive-card.json'),
  type: z.literal('AdaptiveCard'),
  // the one that brought text runs
  version: z.literal('1.2'),
  msteams: z.strictObject({ width: z.literal('Full') }),
  body: z.array(z.discriminatedUnion('type', [richTextBlock, container])).min(1),
  actions: z.array(openUrl).min(1).max(maxActions).optional(),
})

const message = z.strictObject({
  type: z.literal('message'),
  attachments: z.tuple([
    z.strictObject({
      contentType: z.literal('application/vnd.microsoft.card.adaptive'),
      contentUrl: z.null(),
      content: card,
    }),
  ]),
})

/** Says why Teams would not show the message of a request; null: it would. */
export function findTeamsProblem(body: string): string | null {
  const bytes = Buffer.byteLength(body)
  if (bytes > maxBytes) return `${bytes} bytes are too large`
  const parsed = message.safeParse(parseJson(body))
  if (!parsed.success) return z.prettifyError(parsed.error)
  const { body: elements } = parsed.data.attachments[0].content
  const ids = elements.flatMap((one) => ('id' in one && one.id !== undefined ? [one.id] : []))
  return new Set(ids).size < ids.length ? `the same id twice: ${ids.join(', ')}` : null
}

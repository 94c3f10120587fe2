/**
 * A mock workflow of Microsoft Teams, by the published rules: the message that its trigger takes, the schema of
 * Adaptive Cards with the version that brought each element, and the size of a message (docs/api-notes.md,
 * Microsoft Teams). The real one answers 202 and fails afterwards; this one says at once what is wrong.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import {
  createRateLimit,
  objectsIn,
  parseJson,
  readRequest,
  type ReceiverParts,
} from './received.ts'

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
  color: z.enum(['default', 'dark', 'light', 'accent', 'good', 'warning', 'attention']).optional(),
  fontType: z.enum(['default', 'monospace']).optional(),
  isSubtle: z.boolean().optional(),
  size: z.enum(['default', 'small', 'medium', 'large', 'extraLarge']).optional(),
  weight: z.enum(['default', 'lighter', 'bolder']).optional(),
}

const element = {
  id: z.string().min(1).optional(),
  spacing: z
    .enum(['default', 'none', 'small', 'medium', 'large', 'extraLarge', 'padding'])
    .optional(),
  separator: z.boolean().optional(),
}

const textBlock = z.strictObject({
  ...element,
  ...look,
  type: z.literal('TextBlock'),
  text,
  wrap: z.boolean().optional(),
  maxLines: z.int().positive().optional(),
})

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
  ...element,
  type: z.literal('RichTextBlock'),
  inlines: z.array(textRun).min(1),
})

const factSet = z.strictObject({
  ...element,
  type: z.literal('FactSet'),
  facts: z.array(z.strictObject({ title: text, value: text })).min(1),
})

const leaf = z.discriminatedUnion('type', [textBlock, richTextBlock, factSet])

const container = z.strictObject({
  ...element,
  type: z.literal('Container'),
  style: z.enum(['default', 'emphasis', 'good', 'attention', 'warning', 'accent']).optional(),
  items: z.array(leaf).min(1),
})

const anyElement = z.union([leaf, container])

/** The version of the schema that brought an element; a card that declares less may lack it. */
const since: Readonly<Record<string, number>> = {
  AdaptiveCard: 0,
  TextBlock: 0,
  FactSet: 0,
  Container: 0,
  'Action.OpenUrl': 0,
  RichTextBlock: 2,
  TextRun: 2,
}

const card = z.strictObject({
  $schema: z.literal('http://adaptivecards.io/schemas/adaptive-card.json'),
  type: z.literal('AdaptiveCard'),
  version: z.string().regex(/^1\.[0-5]$/u),
  msteams: z.strictObject({ width: z.literal('Full') }),
  body: z.array(anyElement).min(1),
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
  const { content } = parsed.data.attachments[0]
  const objects = objectsIn(content)
  const ids = objects.map(({ id }) => id).filter((id) => typeof id === 'string')
  if (new Set(ids).size < ids.length) return `the same id twice: ${ids.join(', ')}`
  const version = Number(content.version.slice(2))
  const tooNew = objects.find(({ type }) => (since[String(type)] ?? 0) > version)
  return tooNew === undefined ? null : `${String(tooNew['type'])} is newer than ${content.version}`
}

/** A mock Slack: accepts and refuses what a Slack incoming webhook does. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import { createRateLimit, readRequest, type ReceiverParts } from './received.ts'

export function addSlackReceiver(
  app: FastifyInstance,
  { settings, log, inbox }: ReceiverParts,
): void {
  const rateLimit = createRateLimit(settings.slackLimit)

  app.post('/slack/*', (request, reply) => {
    const { path, body } = log.entryFor(request)
    const waitMs = rateLimit.waitMs(path)
    if (waitMs > 0) {
      void reply.header('retry-after', String(Math.ceil(waitMs / 1000)))
      return sendWord(reply, 429, 'rate_limited')
    }
    const error = findSlackError(body)
    if (error) return sendWord(reply, 400, error)
    inbox.take({ sink: 'slack', ...readRequest(request, log) })
    return sendWord(reply, 200, 'ok')
  })
}

function sendWord(reply: FastifyReply, status: number, word: string): FastifyReply {
  return reply.code(status).type('text/plain').send(word)
}

/**
 * The blocks that Tocsin sends, within Slack's published limits; the total was measured. A block of
 * any other kind is refused.
 */
const plainText = (max: number) =>
  z.strictObject({
    type: z.literal('plain_text'),
    text: z.string().min(1).max(max),
    emoji: z.boolean().optional(),
  })
const mrkdwn = z.strictObject({ type: z.literal('mrkdwn'), text: z.string().min(1).max(3000) })

const blockId = { block_id: z.string().min(1).max(255).optional() }

const button = z.strictObject({
  type: z.literal('button'),
  text: plainText(75),
  url: z.string().max(3000),
})

const richInline = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text'), text: z.string().min(1) }),
  z.looseObject({ type: z.literal('link'), url: z.string().min(1).max(3000) }),
])

const richSection = z.looseObject({
  type: z.enum(['rich_text_section', 'rich_text_preformatted']),
  elements: z.array(richInline).min(1),
})

const richList = z.looseObject({
  type: z.literal('rich_text_list'),
  style: z.enum(['bullet', 'ordered']),
  elements: z.array(richSection).min(1),
})

const section = z
  .strictObject({
    ...blockId,
    type: z.literal('section'),
    text: z.union([plainText(3000), mrkdwn]).optional(),
    fields: z.array(plainText(2000)).min(1).max(10).optional(),
  })
  .refine(({ text, fields }) => text !== undefined || fields !== undefined)

const block = z.discriminatedUnion('type', [
  z.strictObject({ ...blockId, type: z.literal('header'), text: plainText(150) }),
  section,
  z.strictObject({
    ...blockId,
    type: z.literal('context'),
    elements: z.array(plainText(2000)).min(1).max(10),
  }),
  z.strictObject({
    ...blockId,
    type: z.literal('actions'),
    elements: z.array(button).min(1).max(25),
  }),
  z.strictObject({
    ...blockId,
    type: z.literal('rich_text'),
    elements: z.array(z.union([richSection, richList])).min(1),
  }),
])

const blocks = z
  .array(block)
  .max(50)
  .refine((list) => {
    const ids = list.map((each) => each.block_id).filter((id) => id !== undefined)
    return new Set(ids).size === ids.length
  })

const maxText = 40_000
const maxBlockText = 13_200

/** Returns Slack's error word for an invalid message; null if it is valid. */
export function findSlackError(message: unknown): string | null {
  if (typeof message !== 'object' || message === null) return 'invalid_payload'
  const { text, blocks: list } = message as Record<string, unknown>
  if (text === undefined && list === undefined) return 'no_text'
  if (text !== undefined && typeof text !== 'string') return 'invalid_payload'
  if (text !== undefined && text.length > maxText) return 'msg_too_long'
  if (list === undefined) return text === '' ? 'no_text' : null
  if (!blocks.safeParse(list).success) return 'invalid_blocks'
  return countCharacters(list) > maxBlockText ? 'msg_blocks_too_long' : null
}

/** Counts the characters of every text in the blocks. */
function countCharacters(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce((sum, [key, inner]: [string, unknown]) => {
    return (
      sum + (key === 'text' && typeof inner === 'string' ? inner.length : countCharacters(inner))
    )
  }, 0)
}

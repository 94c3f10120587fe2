/** The search of an identifier group over HTTP. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { History } from '../history/history.ts'
import type { SandboxSettings } from '../options.ts'
import { createCursorWatch } from './cursor-watch.ts'
import { decodeCursor } from './cursor.ts'
import { sendError, validationEntry } from '../error-bodies.ts'
import { matcherOf } from './filters.ts'
import { createPageHabits } from './page-habits.ts'
import { pageOf } from './page.ts'
import { parseSearchBody, type SearchBody } from './search-body.ts'
import { searchItemOf } from './search-item.ts'
import type { TokenGrant } from './tokens.ts'
import { wirePage } from './wire-page.ts'

export interface Search {
  answer(
    request: FastifyRequest,
    reply: FastifyReply,
    given: { grant: TokenGrant | null; body: unknown },
  ): FastifyReply
  expireCursors: () => void
  changedWalks: () => number
}

export function createSearch(settings: SandboxSettings, history: History): Search {
  const habits = createPageHabits(settings, settings.seed + 2)
  const cursors = createCursorWatch()

  function answerPage(reply: FastifyReply, groupId: number, body: SearchBody): FastifyReply {
    const { from = null, ...walk } = body
    const position = from === null ? null : decodeCursor(from)
    const isRefused = from !== null && cursors.take(from, [groupId, walk]) === 'refused'
    if (isRefused || (from !== null && !position)) {
      return sendError(reply, { status: 400, code: 'INVALID_CURSOR', message: 'bad cursor' })
    }
    const page = pageOf(
      history.ofGroup(groupId),
      {
        order: body.order,
        size: body.size,
        from: position,
        matches: matcherOf(body.filters),
        isHidden: ({ ignoredAtMs }) =>
          ignoredAtMs !== null && !settings.showsIgnored && body.filters.is_ignored !== true,
      },
      habits,
    )
    const wire = wirePage(page.items.map(searchItemOf), page.next, from)
    if (wire.next) cursors.handOut(wire.next, [groupId, walk])
    return reply.send(wire)
  }

  return {
    expireCursors: cursors.expireAll,
    changedWalks: cursors.changedWalks,
    answer(request, reply, { grant, body }) {
      const { id } = request.params as { id: string }
      const group = settings.groups.find((known) => String(known.id) === id)
      if (!/^\d+$/.test(id)) {
        const detail = [validationEntry(['path', 'identifier_group_id'], 'not an integer', id)]
        return reply.code(422).send({ detail })
      }
      if (!group) return sendError(reply, { status: 404, message: 'no such identifier group' })
      if (group.tenantId !== grant?.tenantId) {
        return sendError(reply, { status: 403, message: 'a group of another tenant' })
      }
      const parsed = parseSearchBody(body)
      if ('detail' in parsed) return reply.code(422).send(parsed)
      return answerPage(reply, group.id, parsed.body)
    },
  }
}

/** The API: every question and act of the tables, by JSON below `/api/v1`. */
import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { acts, questions } from './tables.ts'
import { describeApi } from './output/openapi.ts'
import { apiRoot, type Desk } from './desk.ts'
import { PageError } from './page-error.ts'

export function addApi(server: FastifyInstance, desk: Desk): void {
  const description = describeApi(desk.version)
  server.get(`${apiRoot}/openapi.json`, async (request, reply) =>
    sendJson(request, reply, description),
  )
  for (const row of questions) {
    server.get(`${apiRoot}${row.path}`, async (request, reply) =>
      sendJson(request, reply, await desk.answer(row, request)),
    )
  }
  for (const row of acts) {
    server.post(`${apiRoot}${row.path}`, (request) => desk.perform(row, request))
  }
  server.all(`${apiRoot}/*`, { config: { access: 'user' } }, () => {
    throw new PageError('not_found', 'no such address or method', `see ${apiRoot}/openapi.json`)
  })
}

/** With a tag, so that whoever asks again gets what has changed alone. */
function sendJson(request: FastifyRequest, reply: FastifyReply, answer: unknown): FastifyReply {
  const text = JSON.stringify(answer)
  const tag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
  reply.header('etag', tag).type('application/json; charset=utf-8')
  if (request.headers['if-none-match'] === tag) return reply.code(304).send()
  return reply.send(text)
}

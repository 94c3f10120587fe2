import type { FastifyInstance } from 'fastify'

/** Has what a request changed saved before its answer leaves; a reading too may write a report. */
export function saveChanges(app: FastifyInstance, save: () => void): void {
  app.addHook('onSend', async (_request, _reply, payload) => {
    save()
    return payload
  })
}

/** What is done to an event at the service: with the account's key, in the name of who asks. */
import { z } from 'zod'
import { recordServiceAct } from '../../operator/acts/service-acts.ts'
import { readRecord } from '../../store/records.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { triageActions } from '../../upstream/resources/enumerations.ts'
import { act } from '../act.ts'
import { requireLedger } from '../asker.ts'
import { PageError } from '../page-error.ts'

const event = z.object({
  account: z.string().describe('The account that knows it.'),
  id: z.string().describe('Of the event in the ledger.'),
})

export const triageEvent = act({
  path: '/events/:account/:id/triage',
  summary: 'ignore or remediate an event at the service, or undo that',
  input: event.extend({ action: z.enum(triageActions) }),
  perform: async (actor, { action, ...place }) => {
    const found = await findEvent(actor, place)
    const request = { by: actor.user.name, action: `events.act ${action}`, targets: [found.uid] }
    await ask(() =>
      recordServiceAct(found.ledger, request, () =>
        actor.engine.triageEvent(place.account, found.uid, action),
      ),
    )
    return { done: true, said: [`The service took it: ${action}.`] }
  },
})

export const noteEvent = act({
  path: '/events/:account/:id/note',
  summary: 'replace the note of an event at the service',
  input: event.extend({ note: z.string().trim().max(4_000, 'at most 4,000 characters') }),
  perform: async (actor, { note, ...place }) => {
    const found = await findEvent(actor, place)
    const request = { by: actor.user.name, action: 'events.note', targets: [found.uid] }
    await ask(() =>
      recordServiceAct(found.ledger, request, () =>
        actor.engine.noteEvent(place.account, found.uid, note),
      ),
    )
    return { done: true, said: ['The service took the note.'] }
  },
})

async function findEvent(
  asker: Parameters<typeof requireLedger>[0],
  { account, id }: { account: string; id: string },
) {
  const ledger = requireLedger(asker, account)
  const record = await readRecord(ledger, id)
  if (record) return { ledger, uid: record.uid }
  throw new PageError('not_found', 'the ledger has no such event')
}

/** Throws PageError with what the service said. */
async function ask(request: () => Promise<unknown>): Promise<void> {
  try {
    await request()
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    if (!error.mayBeDone) throw new PageError('conflict', `the service refused: ${error.message}`)
    const remedy = 'it may have been done all the same: look at the service'
    throw new PageError('unclear', `the service gave no clear answer: ${error.message}`, remedy)
  }
}

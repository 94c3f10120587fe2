/** What once went wrong in the ledger, as steps of its model. */
import type { Doing, Draws } from './ledger-model.test.ts'

type Drawn = Draws['events'][number]

function events(kind: Drawn['kind'], to: Drawn['to'], given: Partial<Drawn> = {}): Drawn[] {
  return [{ uid: 'paste/site/0', severity: 'low', kind, to, wantsDetail: false, ...given }]
}

/** An event that each sink gets by itself, or in the group that `kind` names. */
function page(kind: Drawn['kind'], to: Drawn['to'], given: Partial<Drawn> = {}): Doing {
  return ['page', { events: events(kind, to, given) }]
}

/** Events that wait together for `siem`. */
function batch(...places: number[]): Doing {
  const each = places.map((n) => events('batch', ['siem'], { uid: `paste/site/${n}` }))
  return ['page', { events: each.flat() }]
}

function later(n: number): Drawn[] {
  return events('other', ['soc'], { uid: `paste/site/${n}` })
}

const raised = { severity: 'critical' } as const
const claim = (sink: Draws['sink'] = 'soc'): Doing => ['claim', { sink }]
const open: Doing = ['open']
/** Another process takes it for its own, whoever has it. */
const overtake: Doing = ['begin any']
/** `place`: which of the attempts that are not settled. */
const settle = (outcome: Draws['outcome'], place = 0): Doing => ['settle', { outcome, place }]
const sendOne = [claim(), open]
const sendBatch: Doing[] = [['freeze'], open]
const sendSiem = [claim('siem'), open]
const wait = (waitMs: Draws['waitMs']): Doing => ['wait', { waitMs }]

export const traces: Record<string, Doing[]> = {
  'an attempt whose opening was executed twice counted as two, and said that it may be a repeat': [
    page('single', ['soc']),
    claim(),
    ['open', { twice: true }],
    settle('delivered'),
  ],
  'an event that its feed showed again as more severe was a mere duplicate': [
    page('single', ['soc']),
    page('single', ['soc'], raised),
  ],
  'a batch left for the fallback while it was sent, and its event was replayed as if for the first time':
    [batch(0), ...sendBatch, ['reroute', { sink: 'siem' }], ['resend'], ...sendSiem],
  'a batch did not say that one of its members may be a repeat': [
    batch(0),
    ...sendBatch,
    ['unfreeze', { sink: 'siem' }],
    batch(1),
    ...sendBatch,
  ],
  'the halves of a batch whose answer was lost went as if for the first time': [
    batch(0, 1),
    ...sendBatch,
    settle('lost'),
    ...sendSiem,
    settle('split'),
    ...sendSiem,
  ],
  'a dead letter forgot that its batch may have arrived, and was replayed as if for the first time':
    [batch(0), ...sendBatch, settle('lost'), ...sendSiem, settle('dead'), ['resend'], ...sendSiem],
  'an item left for the fallback while it was sent, and was replayed as if for the first time': [
    page('single', ['soc']),
    ...sendOne,
    ['reroute'],
    ['resend'],
    ...sendOne,
  ],
  'an item that was replayed died of the answer to the send before': [
    page('single', ['soc']),
    ...sendOne,
    ['reroute'],
    ['resend'],
    settle('dead'),
  ],
  'an item died of the answer to an attempt that had been overtaken': [
    page('single', ['soc']),
    ...sendOne,
    overtake,
    settle('dead'),
  ],
  'a batch died of the answer to an attempt that had been overtaken': [
    batch(0),
    ...sendBatch,
    overtake,
    overtake,
    settle('dead'),
    settle('delivered'),
  ],
  'an item that an overtaken attempt had delivered was delivered once more with its group': [
    page('single', ['soc']),
    ...sendOne,
    overtake,
    settle('again', 1),
    ['gather'],
    wait(400_000),
    ['compose'],
    settle('delivered'),
    ['deliver'],
  ],
  'an item that an overtaken attempt delivered stayed in the group that it had joined': [
    page('single', ['soc']),
    ...sendOne,
    overtake,
    settle('again', 1),
    ['gather'],
    settle('delivered'),
  ],
  'what was sent changed between two tries, because its event came back more severe': [
    page('single', ['soc']),
    ...sendOne,
    settle('again'),
    page('single', ['soc'], raised),
    ...sendOne,
    open,
  ],
  'what was sent changed between two tries, because its event came back more severe once it was claimed':
    [
      page('single', ['soc']),
      claim(),
      page('single', ['soc'], raised),
      open,
      settle('again'),
      ...sendOne,
      open,
    ],
  'what a batch said changed between two tries, because an event of it came back more severe': [
    batch(0),
    ...sendBatch,
    settle('again'),
    page('single', ['soc'], raised),
    ...sendSiem,
  ],
  'a batch stayed due whose last event an operator had taken out of it': [
    batch(0),
    ['discard', { sink: 'siem' }],
  ],
  'what had gone to another sink could not come back': [
    page('single', ['soc']),
    ['move', { sink: 'soc', to: 'siem' }],
    ['move', { sink: 'siem', to: 'soc' }],
  ],
  'an event went by itself, because its group had ended while its full event was fetched': [
    page('other', ['soc'], { wantsDetail: true }),
    ['release'],
  ],
  'a replica that slept through its turn added what came since to a message that was closed': [
    page('other', ['soc']),
    wait(12_000),
    ['nap', { nap: 'claim-timer', waitMs: 400_000, events: [...later(1), ...later(2)] }],
    ['flush'],
  ],
  'a close that was executed again opened its message anew while that was tried': [
    page('backlog', ['soc']),
    wait(40_000),
    ['answer', { answer: 'timeout' }],
    ['nap', { nap: 'close-flush', waitMs: 40_000, events: events('single', ['soc']), twice: true }],
    ['flush'],
  ],
  'a message whose answer was known was taken apart, and its events went again': [
    page('other', ['soc']),
    wait(12_000),
    ['compose'],
    ['crash', { crash: 'settle-members' }],
    ['deliver'],
    ['unfreeze'],
  ],
  'a dead letter was listed no more, though another item kept its record': [
    page('single', ['soc', 'siem']),
    ...sendOne,
    settle('dead'),
    ['trim', { historyMs: 0 }],
  ],
}

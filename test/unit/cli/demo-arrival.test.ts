import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type DemoMessage, toArrival } from '../../../src/cli/demo/evidence.ts'
import { anyUnicode, unseenCharacters } from '../messages/any-unicode.ts'

const id = `e${'0f'.repeat(16)}`
const common = { atMs: 0, to: '', headers: {}, uids: [] }

function aSlackMessage(text: string): DemoMessage {
  const json = { text, blocks: [{ text: `delivery ${id} · uid x` }] }
  return { ...common, sink: 'slack', id: null, body: JSON.stringify(json), json, mail: null }
}

function aMail(subject: string): DemoMessage {
  const parts = { from: '', recipients: [], text: '', html: '', attachments: [] }
  const mail = { ...parts, subject }
  return { ...common, sink: 'email', id: `<${id}.ab@example.com>`, body: '', json: null, mail }
}

function aWebhook(...severities: string[]): DemoMessage {
  const items = severities.map((severity, n) => ({ id: `e${n}`, title: `Paste: ${n}`, severity }))
  const json = { data: items.length === 1 ? items[0] : { items } }
  return { ...common, sink: 'webhook', id: 'b1', body: '', json, mail: null }
}

test('a Slack message is told by its text, entities undone', () => {
  expect(toArrival(aSlackMessage('HIGH Leak: A &amp; B &lt;x&gt; &amp;lt;'))).toMatchObject({
    items: [id],
    severity: 'high',
    text: 'HIGH Leak: A & B <x> &lt;',
  })
})

test('a mail is told by its subject', () => {
  expect(toArrival(aMail('[CRITICAL] Bot for sale: x'))).toMatchObject({
    items: [id],
    severity: 'critical',
    text: 'CRITICAL Bot for sale: x',
  })
})

const sealed = `b${'0f'.repeat(20)}`

test.each([
  ['[2 CRITICAL] 37 new events of acme, worst: Stealer log: a', 'group', 37, 'critical'],
  ['37 new events, worst: Leak: 3 events at once', 'group', 37, ''],
  ['[1 HIGH] 1 new event: Leak: acme[.]com', 'group', 1, 'high'],
  ['[3 HIGH] Backlog of feed staff: 3 events, worst: Leak: a', 'backlog', 3, 'high'],
  ['[1 LOW] Backlog: 1 event', 'backlog', 1, 'low'],
  ['[1 LOW] Backlog of acme: 1 event: Leak: a', 'backlog', 1, 'low'],
  ['[4 MEDIUM] 4 held events, worst: Paste: a', 'held', 4, 'medium'],
  ['[2 HIGH] 14 events at once, worst: Leak: a', 'storm', 14, 'high'],
  ['[2 HIGH] 14 events of acme at once, worst: Leak: a', 'storm', 14, 'high'],
  ['Digest 2026-11-20 16:00: 90 events (8 critical, 37 high)', 'digest', 90, 'critical'],
  ['Digest 2026-11-20 16:00: 1 event (1 low); feed brand is behind', 'digest', 1, 'low'],
  ['Digest 2026-11-20 16:00: nothing new, but 2 feeds are behind', 'digest', 0, ''],
])('"%s" is read as what it says', (said, form, events, severity) => {
  const inSlack = aSlackMessage(said)
  const slack = { ...inSlack, body: JSON.stringify({ text: `delivery ${sealed} · times are UTC` }) }
  const mail = { ...aMail(said), id: `<${sealed}.ab@example.com>` }
  for (const message of [slack, mail]) {
    const read = { id: sealed, form, events, items: [], severity, text: said }
    expect(toArrival(message)).toMatchObject(read)
  }
})

test('one event that is left of a group is a message as any other', () => {
  const mail = { ...aMail('[HIGH] Leak: 37 new events'), id: `<${sealed}.ab@example.com>` }
  const read = {
    id: sealed,
    form: 'single',
    events: 1,
    items: [],
    text: 'HIGH Leak: 37 new events',
  }
  expect(toArrival(mail)).toMatchObject(read)
})

test('an attached table says which events a mail stands for', () => {
  const mail = aMail('Digest 2026-11-20 16:00: 2 events (2 low)')
  const rows = [
    '"severity","type","uid"',
    '"low","paste","paste/x[.]org/1"',
    '"low","a","credential/2"',
    '',
  ]
  const attachments = [{ name: 'tocsin-digest.csv', content: rows.join('\r\n') }]
  const uids = ['paste/x.org/1', 'credential/2']
  const whole = { ...mail, mail: { ...mail.mail!, attachments }, uids: ['paste/x.org/7'] }
  expect(toArrival(whole)).toMatchObject({ uids, isComplete: true })
  const packed = { ...mail.mail!, attachments: [{ name: 'a.csv.gz', content: 'x' }] }
  expect(toArrival({ ...mail, mail: packed })).toMatchObject({ uids: [], isComplete: false })
})

test('a message that may be a repeat is known by its words', () => {
  const slack = aSlackMessage('LOW x')
  const headers = { 'tocsin-possible-repeat': 'true' }
  const note = { text: 'May be a repeat: the answer to an earlier attempt was lost.' }
  const repeats = [
    { ...slack, body: JSON.stringify([note, { text: `delivery ${id}` }]) },
    { ...aMail('[LOW] x'), headers },
    { ...aWebhook('low'), headers },
  ]
  expect(repeats.map((one) => toArrival(one).mayBeRepeat)).toEqual([true, true, true])
  const others = [slack, aMail('[LOW] x'), aWebhook('low')]
  expect(others.map((one) => toArrival(one).mayBeRepeat)).toEqual([false, false, false])
})

test('a webhook with one event is told by its title', () => {
  expect(toArrival(aWebhook('low'))).toMatchObject({
    items: ['e0'],
    severity: 'low',
    text: 'LOW Paste: 0',
  })
})

test('a webhook with several events is told by its severities, highest first', () => {
  expect(toArrival(aWebhook('low', 'critical', 'low', 'urgent'))).toMatchObject({
    items: ['e0', 'e1', 'e2', 'e3'],
    severity: 'critical',
    text: '4 events: 1 UNKNOWN, 1 CRITICAL, 2 LOW',
  })
})

test('whatever the feed wrote, nothing in it moves a cursor or a line', () => {
  const hostile = anyUnicode.map((text) => `${text}\u001B[2J\n\u202E`)
  fc.assert(
    fc.property(hostile, (text) => {
      const mail = aMail(`[${text}] ${text}`)
      for (const message of [aSlackMessage(text), mail, aWebhook(text), aWebhook(text, 'low')]) {
        const arrival = toArrival(message)
        expect(unseenCharacters.test(arrival.text + arrival.severity)).toBe(false)
      }
    }),
  )
})

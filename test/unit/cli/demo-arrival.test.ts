import fc from 'fast-check'
import { expect, test } from 'vitest'
import { arrivalOf } from '../../../src/cli/demo/demo-arrival.ts'
import type { Received } from '../../../src/sandbox/catchers/received.ts'
import { anyUnicode, unseenCharacters } from '../messages/any-unicode.ts'

const id = `e${'0f'.repeat(16)}`
const common = { atMs: 0, to: '', headers: {}, uids: [] }

function aSlackMessage(text: string): Received {
  const json = { text, blocks: [{ text: `delivery ${id} · uid x` }] }
  return { ...common, sink: 'slack', id: null, body: JSON.stringify(json), json, mail: null }
}

function aMail(subject: string): Received {
  const parts = { from: '', recipients: [], text: '', html: '', attachments: [] }
  const mail = { ...parts, subject }
  return { ...common, sink: 'email', id: `<${id}.ab@example.com>`, body: '', json: null, mail }
}

function aWebhook(...severities: string[]): Received {
  const items = severities.map((severity, n) => ({ id: `e${n}`, uid: `paste/x/${n}`, severity }))
  const json = { data: items.length === 1 ? items[0] : { items } }
  return { ...common, sink: 'webhook', id: 'b1', body: '', json, mail: null }
}

test('a Slack message is told by its text, entities undone', () => {
  expect(arrivalOf(aSlackMessage('HIGH Leak: A &amp; B &lt;x&gt; &amp;lt;'))).toMatchObject({
    items: [id],
    severity: 'high',
    text: 'HIGH Leak: A & B <x> &lt;',
  })
})

test('a mail is told by its subject', () => {
  expect(arrivalOf(aMail('[CRITICAL] Bot for sale: x'))).toMatchObject({
    items: [id],
    severity: 'critical',
    text: 'CRITICAL Bot for sale: x',
  })
})

test('a webhook with one event is told by its uid', () => {
  expect(arrivalOf(aWebhook('low'))).toMatchObject({
    items: ['e0'],
    severity: 'low',
    text: 'LOW paste/x/0',
  })
})

test('a webhook with several events is told by its severities, highest first', () => {
  expect(arrivalOf(aWebhook('low', 'critical', 'low', 'urgent'))).toMatchObject({
    items: ['e0', 'e1', 'e2', 'e3'],
    severity: 'critical',
    text: '4 events: 1 CRITICAL, 2 LOW, 1 OTHER',
  })
})

test('whatever the feed wrote, nothing in it moves a cursor or a line', () => {
  const hostile = anyUnicode.map((text) => `${text}\u001B[2J\n\u202E`)
  fc.assert(
    fc.property(hostile, (text) => {
      const mail = aMail(`[${text}] ${text}`)
      for (const message of [aSlackMessage(text), mail, aWebhook(text), aWebhook(text, 'low')]) {
        const arrival = arrivalOf(message)
        expect(unseenCharacters.test(arrival.text + arrival.severity)).toBe(false)
      }
    }),
  )
})

/**
 * What people and machines get, letter by letter, so that a change of structure is seen to change none of it.
 * `npm run golden` records anew what was meant to change.
 */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { maskDetail } from '../../src/masking/masking.ts'
import { parseCredentialItem } from '../../src/feed-types/credentials.ts'
import { parseItem } from '../../src/feed-types/events.ts'
import { parseReport } from '../../src/feed-types/reports.ts'
import { composeMail } from '../../src/sinks/email/email-sink.ts'
import type { Delivery, DeliveryMember } from '../../src/sinks/sink.ts'
import { renderIncident } from '../../src/sinks/pagerduty/pagerduty-sink.ts'
import { previewSlack } from '../../src/sinks/slack/slack-message.ts'
import { cardText, renderTeams } from '../../src/sinks/teams/teams-card.ts'
import { renderBody } from '../../src/sinks/webhook/body.ts'
import { eventTypeSamples, type EventTypeSample } from '../fixtures/event-types.ts'
import { aCredentialFeed } from '../support/feeds.ts'
import { aMember } from '../support/deliveries.ts'
import { aBusyDigest, digestFacts, manyMembers, summarised } from '../support/summaries.ts'

type Scene = [name: string, delivery: Delivery]

function delivery(members: DeliveryMember[], more: Partial<Delivery> = {}): Delivery {
  const destination = { id: 'soc', label: 'soc' }
  return { id: 'd0123456789abcde', destination, members, attempt: 1, mayBeRepeat: false, ...more }
}

function memberOf(sample: EventTypeSample): DeliveryMember {
  const type = sample.type ?? sample.uid.split('/')[0] ?? ''
  const parsed = parseItem({
    metadata: {
      uid: sample.uid,
      type,
      severity: 'critical',
      estimated_created_at: '2026-11-01T12:00:00Z',
      flare_url: `https://api.example.com/#/uid?uid=${sample.uid}`,
    },
    highlights: sample.highlights ?? {},
    identifiers: [{ id: 7, name: sample.identifier ?? 'acme.com' }],
  })
  if (!parsed.ok) throw new Error(parsed.problem)
  return aMember({ event: parsed.event, link: parsed.event.url })
}

const eachType = eventTypeSamples.flatMap((sample): Scene[] => {
  const member = memberOf(sample)
  const name = sample.type ?? sample.uid.split('/')[0] ?? ''
  const bare: Scene = [name, delivery([member])]
  if (!sample.full) return [bare]
  const detail = maskDetail(sample.full.data, sample.uid)
  return [bare, [`${name}, with the full event`, delivery([{ ...member, detail }])]]
})

function credential(): DeliveryMember {
  const raw = {
    id: 17,
    identity_name: 'joe@acme.com',
    hash: 'hunter2-Acme!',
    domain: 'acme.com',
    imported_at: '2026-11-01T12:00:00',
    auth_domains: ['sso.acme.com'],
    source: { id: 'combolists', name: 'A list', breached_at: '2020-01-01', pii_tags: ['email'] },
  }
  const parsed = parseCredentialItem(raw, aCredentialFeed())
  if (!parsed.ok) throw new Error(parsed.problem)
  return aMember({ event: parsed.event, feed: 'leaks', link: null })
}

function report(): DeliveryMember {
  const content = { id: 'r1', title: 'A flow of threats', summary: 'Much happened.' }
  const end = { requestId: 'q1', outcome: 'completed', report: content } as const
  return aMember({ event: parseReport(end, 'high'), feed: 'flows', link: null })
}

const several = manyMembers(12)
const scenes: Scene[] = [
  ['a leaked credential', delivery([credential()])],
  ['a report', delivery([report()])],
  ['a repeat, at its third attempt', delivery([aMember()], { attempt: 3, mayBeRepeat: true })],
  ['a test', delivery([aMember()], { isTest: true })],
  ['an event without a full event', delivery([aMember({ detail: 'unavailable' })])],
  ['a group', delivery(several.slice(0, 5), summarised(several.slice(0, 5)))],
  ['a large group', delivery(several, summarised(several))],
  ['a backlog', delivery(several, summarised(several, { kind: 'backlog', route: null }))],
  ['a digest', delivery(several, aBusyDigest())],
  [
    'a digest of nothing',
    delivery([], summarised([], { kind: 'digest', route: null, digest: digestFacts() })),
  ],
]

function mailOf(one: Delivery): Record<string, unknown> & { text: string; html: string } {
  const options = { sink: 'oncall', from: 'Tocsin <t@example.com>', to: 'a@example.com', nowMs: 0 }
  const { text, html, ...head } = composeMail(one, options)
  return { ...head, text: text as string, html: html as string }
}

function inJson(all: Scene[], render: (one: Delivery) => unknown): string {
  return `${JSON.stringify(Object.fromEntries(all.map(([name, one]) => [name, render(one)])), null, 1)}\n`
}

const all = [...eachType, ...scenes]

test('Slack gets what it got', async () => {
  expect(all.length).toBeGreaterThan(90)
  await expect(inJson(all, previewSlack)).toMatchFileSnapshot('recorded/slack.json')
})

test('Teams gets what it got', async () => {
  const texts = all.map(([name, one]) => `==== ${name}\n${cardText(renderTeams(one))}\n`)
  await expect(texts.join('\n')).toMatchFileSnapshot('recorded/teams.txt')
  const shown = all.filter(([name]) => /^(stealer_log|a (group|digest))/.test(name))
  expect(shown.length).toBeGreaterThan(3)
  await expect(inJson(shown, renderTeams)).toMatchFileSnapshot('recorded/teams.json')
})

test('PagerDuty gets what it got', async () => {
  const incidents = all.filter(([name]) => !name.startsWith('a digest'))
  expect(incidents.length).toBe(all.length - 2)
  await expect(inJson(incidents, renderIncident)).toMatchFileSnapshot('recorded/pagerduty.json')
})

test('webhooks get what they got', async () => {
  const bodies = inJson(
    all.filter(([, { members }]) => members.length > 0),
    (one) => JSON.parse(renderBody(one)) as unknown,
  )
  await expect(bodies).toMatchFileSnapshot('recorded/webhook.json')
})

test('mails say what they said', async () => {
  const mails = all.map(([name, one]) => {
    const { text, html, ...head } = mailOf(one)
    const look = createHash('sha256').update(html).digest('hex').slice(0, 16)
    return `==== ${name}\n${JSON.stringify(head, null, 1)}\nHTML ${look}\n\n${text}\n`
  })
  await expect(mails.join('\n')).toMatchFileSnapshot('recorded/mails.txt')
})

test('mails look as they looked', async () => {
  const shown = all.filter(([name]) => /^(stealer_log|domain|a (group|backlog|digest))/.test(name))
  expect(shown.length).toBeGreaterThan(5)
  const pages = shown.map(([name, one]) => `<!-- ${name} -->\n${mailOf(one).html}\n`)
  await expect(pages.join('\n')).toMatchFileSnapshot('recorded/mails.html')
})

/** Whatever comes as an event's link: what can be clicked in any dialect leads to the service. */
import { parseItem } from '../../../src/feed-types/events.ts'
import { parseLegacyItem } from '../../../src/feed-types/legacy-search.ts'
import { createCsv, toCsvRow } from '../../../src/messages/csv.ts'
import { createLinkFilter } from '../../../src/upstream/links.ts'
import { composeMail } from '../../../src/sinks/email/email-sink.ts'
import type { Delivery, DeliveryMember } from '../../../src/sinks/sink.ts'
import { previewSlack } from '../../../src/sinks/slack/slack-message.ts'
import { renderBody } from '../../../src/sinks/webhook/body.ts'
import { aMember } from '../../support/deliveries.ts'
import { aSummary } from '../../support/summaries.ts'
import { linkable } from '../../unit/messages/any-unicode.ts'
import { bytesOf } from '../engine/bytes.ts'
import { assertThat } from '../engine/target.ts'

export const dictionary = [
  'https://app.example.com',
  'https://api.example.com',
  'http://127.0.0.1:8080/',
  'https://',
  'http:\\\\',
  '.example.com',
  '.linked.example',
  'exact.example',
  'evil.example',
  'joe:secret@',
  ':443',
  ':8080',
  '%2e',
  '\u3002',
  '\uFF0F',
  'xn--',
  '[::1]',
  'javascript:',
  '"><a href=https://evil.example>',
]

/** With what their links may lead to, said apart from the code under test. */
const accounts = [
  {
    rule: createLinkFilter([
      { name: 'main', baseUrl: 'https://api.example.com', linkHosts: ['.linked.example'] },
    ]),
    own: /^https:\/\/(?:(?:[a-z0-9_-]+\.)*(?:example\.com|linked\.example))(?:[/?#]|$)/,
  },
  {
    rule: createLinkFilter([
      { name: 'main', baseUrl: 'http://127.0.0.1:8080', linkHosts: ['exact.example'] },
    ]),
    own: /^(?:http:\/\/127\.0\.0\.1:8080|https:\/\/127\.0\.0\.1|https:\/\/exact\.example)(?:[/?#]|$)/,
  },
] as const

export function fuzz(data: Uint8Array): void {
  const bytes = bytesOf(data)
  const { rule, own } = bytes.pick(accounts)
  const isLegacy = bytes.byte() % 2 === 1
  const url = bytes.text()
  const metadata = { uid: 'paste/a/b', type: 'paste', severity: 'high', flare_url: url }
  const header = { external_url: url, uid: 'paste/a/b' }
  const parsed = isLegacy
    ? parseLegacyItem({ header, data: { metadata } })
    : parseItem({ metadata, highlights: { url: [url] } })
  if (!parsed.ok) return
  const { event } = parsed
  const member = aMember({ event, detail: { url }, link: rule('main', event.url) })
  for (const link of linksOf(member)) assertThat(own.test(link), 'leads elsewhere', { url, link })
}

/** What a client opens, of a message about the event alone and of a group with it. */
function linksOf(member: DeliveryMember): string[] {
  const sole: Delivery = {
    id: '0123456789abcdef',
    destination: { id: 'a', label: 'a@b.example' },
    members: [member],
    attempt: 1,
    mayBeRepeat: false,
  }
  const members = [member, member]
  const group = { ...sole, members, summary: aSummary(members) }
  return [
    ...[sole, group].flatMap((delivery) => [...slackLinks(delivery), ...mailLinks(delivery)]),
    ...webhookLinks(sole),
    ...csvLinks(member),
  ]
}

function slackLinks(delivery: Delivery): string[] {
  const { inBlocks, plainText: inWords } = previewSlack(delivery)
  const buttons = objectsIn(inBlocks).flatMap(({ url }) => (typeof url === 'string' ? [url] : []))
  const texts = objectsIn(inBlocks).flatMap(({ text }) => (typeof text === 'string' ? [text] : []))
  return [...buttons, ...[...texts, inWords.text ?? ''].flatMap(autoLinks)]
}

function mailLinks(delivery: Delivery): string[] {
  const options = { sink: 'oncall', from: 'Tocsin <t@b.example>', to: 'a@b.example', nowMs: 0 }
  const { html, text } = composeMail(delivery, options) as { html: string; text: string }
  const hrefs = [...html.matchAll(/\s(?:href|src|action)="([^"]*)"/gi)].map(([, to = '']) => to)
  return [...hrefs.map((href) => href.replaceAll('&amp;', '&')), ...autoLinks(text)]
}

function webhookLinks(delivery: Delivery): string[] {
  const { data } = JSON.parse(renderBody(delivery)) as {
    data: { url: string | null; unverified_link?: string }
  }
  return [...(data.url === null ? [] : [data.url]), ...autoLinks(data.unverified_link ?? '')]
}

function csvLinks(member: DeliveryMember): string[] {
  const [, row = ''] = Buffer.from(createCsv().add(toCsvRow(member)).finish())
    .toString()
    .split('\r\n')
  return [...row.matchAll(/"((?:[^"]|"")*)"/g)].flatMap(([, cell = '']) => autoLinks(cell))
}

/** What a client makes a link of by itself; a text beside our links must have none. */
function autoLinks(text: string): string[] {
  const found = text.match(/(?<!hxxps?)(?<=^|[^a-z])https?:\/\/\S+/giu) ?? []
  const rest = found.reduce((left, link) => left.replace(link, ''), text)
  assertThat(!linkable.test(rest.replaceAll('b.example', '')), 'links', { rest })
  return found
}

function objectsIn(value: unknown): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return []
  return [value as Record<string, unknown>, ...Object.values(value).flatMap(objectsIn)]
}

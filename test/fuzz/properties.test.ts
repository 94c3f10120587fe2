/** Promises held against drawn inputs, where no test of a room draws them: links, pages, addresses. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseItem } from '../../src/feeds/types/events.ts'
import { sortPage } from '../../src/feeds/parse.ts'
import { buildAttachment, toCsvRow } from '../../src/messages/csv.ts'
import { emailType } from '../../src/sinks/email/config.ts'
import { composeMail } from '../../src/sinks/email/email-sink.ts'
import { readSmtpAddress } from '../../src/sinks/email/smtp.ts'
import { SinkError, type Delivery, type DeliveryMember } from '../../src/sinks/sink.ts'
import { previewSlack } from '../../src/sinks/slack/slack-message.ts'
import { renderBody } from '../../src/sinks/webhook/body.ts'
import { createLinkFilter } from '../../src/upstream/links.ts'
import { wireSearchPage } from '../../src/upstream/resources/page.ts'
import { readAnswer } from '../../src/upstream/access/session.ts'
import { aMember } from '../support/deliveries.ts'
import { aCredentialFeed, aCredentialSearch, aFeed } from '../support/feeds.ts'
import { runs } from '../support/runs.ts'
import { aSummary } from '../support/summaries.ts'
import { linkable } from '../unit/messages/any-unicode.ts'

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

const linkParts =
  'https://app.example.com|https://api.example.com|http://127.0.0.1:8080/|https://|http:\\\\|.example.com|.linked.example|exact.example|evil.example|joe:secret@|:443|:8080|%2e|\u3002|\uFF0F|xn--|[::1]|javascript:|"><a href=https://evil.example>|/|@|x'

const anyLink = fc
  .array(fc.oneof(fc.constantFrom(...linkParts.split('|')), fc.string({ maxLength: 4 })), {
    maxLength: 6,
  })
  .map((parts) => parts.join(''))

/** What was found before: a browser's idea of a slash, an empty label, a login, markup behind a host. */
const foundLinks = [
  'https:\\\\app.example.com\\@evil.example',
  'https:.example.com',
  'https://exact.example/"><b>',
  'https://app.example.com@evil.example/',
  'http://127.0.0.1:8080/x',
]

test('whatever comes as a link of an event, what can be clicked in any dialect leads to the service', () => {
  fc.assert(fc.property(fc.constantFrom(...accounts), anyLink, leadsHome), {
    numRuns: runs({ short: 60, long: 600 }),
    examples: foundLinks.flatMap((url) => accounts.map((account) => [account, url] as const)) as [
      (typeof accounts)[number],
      string,
    ][],
  })
})

function leadsHome({ rule, own }: (typeof accounts)[number], url: string): void {
  const metadata = { uid: 'paste/a/b', type: 'paste', severity: 'high', flare_url: url }
  const parsed = parseItem({ metadata, highlights: { url: [url] } })
  if (!parsed.ok) return
  const { event } = parsed
  const member = aMember({ event, detail: { url }, link: rule('main', event.url) })
  for (const link of linksOf(member)) expect(link).toMatch(own)
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
  const [, row = ''] = Buffer.from(buildAttachment([toCsvRow(member)], 'row').content)
    .toString()
    .split('\r\n')
  return [
    ...[sole, group].flatMap((delivery) => [...slackLinks(delivery), ...mailLinks(delivery)]),
    ...webhookLinks(sole),
    ...[...row.matchAll(/"((?:[^"]|"")*)"/g)].flatMap(([, cell = '']) => autoLinks(cell)),
  ]
}

function slackLinks(delivery: Delivery): string[] {
  const { inBlocks, plainText: inWords } = previewSlack(delivery)
  const values = objectsIn(inBlocks).flatMap(({ url, text }) => [
    ...(typeof url === 'string' ? [url] : []),
    ...(typeof text === 'string' ? autoLinks(text) : []),
  ])
  return [...values, ...autoLinks(inWords.text ?? '')]
}

function mailLinks(delivery: Delivery): string[] {
  const options = { sink: 'oncall', from: 'Tocsin <t@b.example>', to: 'a@b.example', nowMs: 0 }
  const { html, text } = composeMail(delivery, options) as { html: string; text: string }
  const hrefs = [...html.matchAll(/\s(?:href|src|action)="([^"]*)"/gi)].map(([, to = '']) => to)
  // A long word goes on in the next line of the quote: it is judged whole.
  const unfolded = text.replaceAll(/\n {2}\| /g, '')
  return [...hrefs.map((href) => href.replaceAll('&amp;', '&')), ...autoLinks(unfolded)]
}

function webhookLinks(delivery: Delivery): string[] {
  const { data } = JSON.parse(renderBody(delivery)) as {
    data: { url: string | null; unverified_link?: string }
  }
  return [...(data.url === null ? [] : [data.url]), ...autoLinks(data.unverified_link ?? '')]
}

/** What a client makes a link of by itself; a text beside our links must have none. */
function autoLinks(text: string): string[] {
  const found = text.match(/(?<!hxxps?)(?<=^|[^a-z])https?:\/\/\S+/giu) ?? []
  const rest = found.reduce((left, link) => left.replace(link, ''), text)
  expect(rest.replaceAll('b.example', '')).not.toMatch(linkable)
  return found
}

function objectsIn(value: unknown): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return []
  return [value as Record<string, unknown>, ...Object.values(value).flatMap(objectsIn)]
}

const feeds = [aFeed({ detail: ['high'] }), aCredentialFeed(), aCredentialSearch()]

test('any JSON for a page, through every type of feed, loses no item and keeps uids that are keys', () => {
  const item = fc.oneof(
    fc.jsonValue(),
    fc.record(
      { id: fc.jsonValue(), metadata: fc.record({ uid: fc.jsonValue(), type: fc.jsonValue() }) },
      { requiredKeys: [] },
    ),
  )
  fc.assert(
    fc.property(fc.constantFrom(...feeds), fc.array(item), (feed, items) => {
      const { events, malformed } = sortPage(itemsOf({ items, next: null }), {
        feed,
        startBoundMs: 0,
        readsBaseline: true,
        plan: () => ({ decisions: [], items: [] }),
        pairDigest: (parts) => parts.join('|'),
        sealSecret: (uid, secret) => `${uid}${secret}`,
      })
      expect(events.length + malformed.length).toBe(items.length)
      for (const { uid } of events.map(({ event }) => event)) {
        expect(uid !== '' && uid.isWellFormed() && !/\p{Cc}/u.test(uid)).toBe(true)
      }
      for (const { problem } of malformed) expect(problem).toMatch(/^[^\n]{3,300}$/u)
    }),
    { numRuns: runs({ short: 100, long: 700 }) },
  )
})

function itemsOf(page: unknown): readonly unknown[] {
  const answer = { status: 200, headers: {}, body: JSON.stringify(page), sentAtMs: 0 }
  return readAnswer(answer, wireSearchPage).items
}

/** Texts of these characters only: almost right far more often than any text. */
function written(characters: string, maxLength = 40): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(...characters.split('')), maxLength })
}

const address = written('ab.@<>"%[]:1 é\t_-\\', 30)

test('an address that the configuration takes is a server, or a sender and recipient that forge no header', () => {
  const usual = {
    type: 'email',
    smtp: 'smtp://h.example',
    from: 'a@b.example',
    to: ['c@d.example'],
  }
  fc.assert(
    fc.property(address, address, address, (host, from, to) => {
      expect(isServer({ ...usual, smtp: `smtp://${host}` })).toBe(true)
      checkHeaders({ ...usual, from: `${from} <a@b.example>` })
      checkHeaders({ ...usual, to: [to] })
    }),
    {
      numRuns: runs({ short: 80, long: 400 }),
      examples: [['user:pa%40ss@mail.example.com:587', '"A, B"', 'a+b@sub.example.com']],
    },
  )
})

function isServer(file: object): boolean {
  const { success, data } = emailType.config.safeParse(file)
  if (!success) return true
  try {
    const { host, port } = readSmtpAddress({ name: 'oncall', ...data })
    return host !== '' && port >= 1 && port <= 65_535
  } catch (error) {
    if (error instanceof SinkError && error.reason === 'misconfigured') return true
    throw error
  }
}

function checkHeaders(file: object): void {
  const { success, data } = emailType.config.safeParse(file)
  if (!success) return
  const [to = ''] = data.to
  const delivery: Delivery = {
    id: '0123456789abcdef',
    destination: { id: 'a', label: to },
    members: [aMember()],
    attempt: 1,
    mayBeRepeat: false,
  }
  const mail = composeMail(delivery, { sink: 'oncall', from: data.from, to, nowMs: 0 })
  const { envelope, messageId, inReplyTo, headers } = mail
  const said = JSON.stringify([envelope, messageId, inReplyTo, headers, mail.from, mail.to])
  // a backslash in a name is no line end
  expect(said.replaceAll('\\\\', '')).not.toMatch(/\\[rn]|\\u000/)
  for (const id of [messageId, inReplyTo]) expect(id).toMatch(/^<[^<>\s]+@[^<>\s@]+>$/)
  expect(envelope?.from).toMatch(/^[^\s<>]+@[^\s<>@]+$/)
}

import type { Delivery, DeliveryMember, Sink } from '../../src/sinks/sink.ts'
import { createLinkFilter } from '../../src/upstream/links.ts'
import { aThreatEvent } from './events.ts'

const serviceLink = createLinkFilter([
  { name: 'main', baseUrl: 'https://api.example.com', linkHosts: [] },
])

/** A plausible member; say only what the test is about. */
export function aMember(overrides: Partial<DeliveryMember> = {}): DeliveryMember {
  const { event = aThreatEvent() } = overrides
  return {
    id: 'item1',
    account: 'main',
    feed: 'brand',
    labels: { team: 'brand' },
    routes: ['urgent'],
    event,
    link: serviceLink('main', event.url),
    fetchedAtMs: Date.UTC(2026, 10, 1, 12, 2, 0),
    ...overrides,
  }
}

/** A first attempt of one member at the sink's first destination. */
export function aDelivery(sink: Sink, overrides: Partial<Delivery> = {}): Delivery {
  const destination = sink.destinations[0]
  if (destination === undefined) throw new Error(`sink ${sink.name} has no destination`)
  return {
    id: '0123456789abcdef',
    destination,
    members: [aMember()],
    attempt: 1,
    mayBeRepeat: false,
    ...overrides,
  }
}

/** Text as a leak site would write it for us: markup, mentions, links, headers, formulas, overrides. */
export const hostileTexts = [
  '<script>alert(1)</script>',
  '</pre></td><img src=https://evil.example/pixel.png onerror=alert(1)>',
  '<!channel> <!here> <@U012AB3CD> <#C012AB3CD> <!subteam^S012AB3CD>',
  '<https://evil.example/login|https://bank.example/login>',
  '```\n*bold* _it_ ~no~ `code` :skull:',
  'x\r\nBcc: victim@example.net\r\nX-Forged: yes',
  '\r\n.\r\nMAIL FROM:<evil@example.net>\r\n',
  '=HYPERLINK("https://evil.example","open")',
  '{{ 7 | times: 7 }} ${7*7} %s %0d%0aSet-Cookie:a=b',
  'http:\\\\evil.example //evil.example/x www.evil.example mailto:joe@evil.example tel:117 javascript:alert(1)',
  '[a](https://evil.example) ![a](//evil.example/b) "}], "url": "https://evil.example", "y": [{"a": "\\',
  '=?UTF-8?Q?=0D=0ABcc:_x@evil.example?= \u{1F525} \uD800',
  '\u202Egpj.exe\u2066 \u200Bzero\u0000width\u0007',
] as const

/** The text at every place where the feed, and not the operator, decides what stands. */
export function hostileMember(text: string): DeliveryMember {
  return aMember({
    event: aThreatEvent({
      type: text,
      source: text,
      severity: text,
      originalSeverity: text,
      url: `https://app.example.com/${text}`,
      tags: [text],
      notes: text,
      identifiers: [{ id: 1, name: text }],
      highlights: { [text]: [text], content: [text, text] },
    }),
    detail: { title: text, content: text, [text]: { nested: [text] } },
    otherRecipients: [text, text.repeat(2)],
  })
}

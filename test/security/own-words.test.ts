/**
 * Hostile samples through every way in which words get into a message (built-in titles, templates,
 * what routes say) and out of `render`, for every type of sink: all of it stays text.
 */
import { expect, test } from 'vitest'
import { objectsIn } from '../../src/sandbox/receivers/received.ts'
import { aFile, tocsin } from '../integration/cli/tocsin.ts'
import { hostileTexts } from '../support/sink-conformance.ts'
import { actedUpon, hostileWords } from './hostile-words.ts'

const samples: readonly string[] = [
  ...hostileTexts,
  ...hostileWords.map(([, words]) => words),
  'https://evil.example/x http:\\\\evil.example //evil.example/x \\\\evil.example\\share www.evil.example',
  'mailto:joe@evil.example tel:117 javascript:alert(1) [a](https://evil.example) ![a](//evil.example/b)',
  '"}], "url": "https://evil.example", "y": [{"a": "\\',
  '=?UTF-8?Q?=0D=0ABcc:_x@evil.example?= \u{1F525} \uD800',
]

/** Every variable with words of a feed, alone, in markup that the template begins, and joined to links. */
const joined =
  '{% assign host = "evil example" | split: " " %}https://{{ host[0] }}.{{ host[1] }}/x'
const loud = {
  title: `${joined} {{ source }} {{ type | upcase }} [{{ tags[0] }}]({{ notes }}) <!{{ severity }}> {{ title }}`,
  body: `Own line
{{ summary }}
{{ notes }}
{{ tags | join: "\\n" }}
<b>{{ source }}</b> @{{ type }} <!{{ severity }}> <{{ url }}|{{ source }}> <@{{ tags[0] }}>
${joined}
{% for entry in highlights %}{{ entry[0] }}: {{ entry[1] }}
{% endfor %}{{ detail }} {{ detail | json }}
{% for fact in facts %}{{ fact.label }}: {{ fact.value | replace: "[.]", "." | replace: "hxxp", "http" }}
{% endfor %}{{ identifiers | map: "name" }}`,
  webhook_body: `{
  "title": {{ title }}, "joined": {{ title | append: source | append: '", "x": "' }}, "notes": {{ notes }},
  "tags": {{ tags }}, "all": [{{ highlights }}, {{ detail }}, {{ facts }}, {{ source | json }}], "type": {{ type | upcase | prepend: '"' }}
}`,
}

const mention = 'U012AB3CD'

/** What an operator may paste into a file: it is shown as it stands, and is no markup either. */
const ownNote = '<!channel> <@U999999999> <b>bold</b> *x* `y` "}], \u202E\u0007 end'

function configText(templates: Partial<typeof loud>): string {
  const { webhook_body, ...words } = templates
  const people = JSON.stringify(words)
  const body = JSON.stringify(webhook_body === undefined ? {} : { webhook_body })
  return `accounts: { main: { base_url: "https://api.example.com", api_key: fw_key } }
feeds: { brand: { type: events, identifier_group: 1042, detail: [high] } }
sinks:
  slack: { type: slack, url: "https://hooks.slack.com/services/T0/B0/x", templates: ${people} }
  teams: { type: teams, url: "https://x.logic.azure.com/workflows/a?sig=x", templates: ${people} }
  pagerduty: { type: pagerduty, routing_key: 0123456789abcdef0123456789abcdef, templates: ${people} }
  email: { type: email, smtp: "smtps://mail.example.com", from: a@b.example, to: [c@d.example], templates: ${people} }
  webhook: { type: webhook, url: "https://siem.example.com/x", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, templates: ${body} }
route:
  sinks: [slack, teams, pagerduty, email, webhook]
  note: ${JSON.stringify(ownNote)}
  runbook_url: https://wiki.example.com/run
  mention: [${mention}]
messages: { next_steps: { paste: ${JSON.stringify(ownNote)} } }
`
}

/** Hostile in every field that a leak site or the service fills, of a type that is known and of one that is not. */
function hostileItem(words: string, type: string): object {
  const uid = 'paste/x/<!here>'
  return {
    metadata: {
      uid,
      type,
      severity: words,
      flare_url: `https://app.example.com/#/uid?uid=${words}`,
      source: words,
    },
    identifiers: [{ id: 7, name: words }],
    highlights: { [words]: [words], content: [words, `<mark>${words}</mark>`] },
    tags: [words, 'U012AB3CE'],
    notes: words,
    data: { title: words, content: words, url: words, source: words, [words]: { deep: [words] } },
  }
}

type SinkName = 'slack' | 'teams' | 'pagerduty' | 'email' | 'webhook'

interface Shown {
  subject: string | null
  text: string
  html: string | null
  headers: Record<string, string> | null
  body: unknown
  notes: string[]
}

async function render(
  file: string,
  config: string,
  sink: SinkName,
  ...form: string[]
): Promise<string> {
  const args = ['render', file, `--sink=${sink}`, '--feed=brand', '--config', config, ...form]
  const { code, out, err } = await tocsin(...args)
  expect({ code, err: err.replace(/^\(.*\)\n$/, '') }).toEqual({ code: 0, err: '' })
  return out
}

const isOwnLink = /^https:\/\/(?:app|wiki)\.example\.com\//

/** As a terminal, a mail program or a chat would make links of a text. */
function expectNoLink(text: string): void {
  const foreign = text.replaceAll(/\b(?:https?|ftp):[/\\]{2}[^\s"<>]+/giu, (link) =>
    isOwnLink.test(link) ? '' : link,
  )
  expect(foreign).not.toMatch(
    /\b(?:https?|ftp):[/\\]{2}|evil\.example|(?<!\w)(?:mailto|javascript|tel):(?=\S)/iu,
  )
}

function expectVisible(text: string): void {
  expect(text.replaceAll('\n', ' ')).not.toMatch(actedUpon)
  expect(text.isWellFormed()).toBe(true)
}

const tags = new Set(
  'html head meta title style body main div p span strong b em pre code table tbody thead tr td th ul li a h1 h2 h3 br hr blockquote small'.split(
    ' ',
  ),
)

function expectPlainHtml(html: string): void {
  expectVisible(html)
  const found = [...html.matchAll(/<\/?([^\s<>/]*)[^>]*>?/gu)]
  const names = found.map(([, name = '']) => name.toLowerCase())
  expect(names.filter((name) => !tags.has(name))).toEqual(['!doctype'])
  const active = /\s(?:on\w+|src|srcset|action|formaction|background)\s*=/iu
  expect(found.filter(([tag]) => active.test(tag))).toEqual([])
  const targets = found.flatMap(([tag]) => /\shref="?([^"\s>]*)/iu.exec(tag)?.[1] ?? [])
  expect(targets.filter((target) => !isOwnLink.test(target))).toEqual([])
}

/** Every text, those that name a value too. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [name, ...textsIn(inner)])
}

function expectSlack({ body, text }: Shown): void {
  expect(body).toMatchObject({ mrkdwn: false, unfurl_links: false, unfurl_media: false })
  const ping = `<@${mention}>`
  const [fallback, parts] = [String((body as { text: string }).text), objectsIn(body)]
  expect(fallback.replace(ping, '')).not.toMatch(/[<>]/u)
  for (const { type, text: words, url } of parts) {
    expect(['broadcast', 'user', 'usergroup', 'channel', 'emoji']).not.toContain(type)
    if (type === 'mrkdwn') expect(words).toBe(ping)
    if (type === 'plain_text') expect(words).not.toMatch(/[<>]/u)
    if (url !== undefined) expect(url).toMatch(isOwnLink)
  }
  for (const words of textsIn(body)) expectVisible(words)
  for (const words of [text, ...textsIn(body)]) expectNoLink(words)
}

function expectTeams({ body, text }: Shown): void {
  for (const { type, text: words, url, entities } of objectsIn(body)) {
    expect(['TextBlock', 'FactSet', 'Image', 'Input.Text', 'Action.Submit']).not.toContain(type)
    if (typeof words === 'string') expect(type).toBe('TextRun')
    if (url !== undefined) expect(url).toMatch(isOwnLink)
    expect(entities).toBeUndefined()
  }
  for (const words of [text, ...textsIn(body)]) {
    if (words.startsWith('http://adaptivecards.io/')) continue
    expectVisible(words)
    expectNoLink(words)
  }
}

function expectPagerDuty({ body }: Shown): void {
  const { links } = body as { links: { href: string; text: string }[] }
  for (const { href, text } of links) {
    expect(href).toMatch(isOwnLink)
    expect(text).toMatch(/^Open (?:event|runbook)$/u)
  }
  for (const words of textsIn(body)) {
    expectVisible(words)
    expectNoLink(words)
  }
}

function expectMail({ subject, text, html }: Shown): void {
  expectVisible(subject ?? '\u0000')
  expect(subject).not.toMatch(/[\r\n]/u)
  expectVisible(text)
  for (const words of [subject ?? '', text]) expectNoLink(words)
  expectPlainHtml(html ?? '')
}

/** Machines get what a feed says, as values of JSON; no key, link or envelope comes of it. */
function expectWebhook({ body, text }: Shown): void {
  expect(JSON.parse(text)).toEqual(body)
  const own = body as { title?: string; data?: { url: string; unverified_link?: string } }
  const keys =
    own.data === undefined
      ? ['title', 'joined', 'notes', 'tags', 'all', 'type']
      : ['type', 'timestamp', 'data']
  expect(Object.keys(own)).toEqual(keys)
  expect(own.data?.url ?? 'https://app.example.com/').toMatch(isOwnLink)
}

const checks: Readonly<Record<SinkName, (shown: Shown) => void>> = {
  slack: expectSlack,
  teams: expectTeams,
  pagerduty: expectPagerDuty,
  email: expectMail,
  webhook: expectWebhook,
}

const headerNames = 'content-type user-agent webhook-id idempotency-key tocsin-attempt'.split(' ')

const cases = (Object.keys(checks) as SinkName[]).flatMap((sink, at) => [
  { sink, words: 'the built-in look', templates: {}, at },
  { sink, words: 'templates', templates: loud, at: at + 1 },
])

/** Those of `render` for people, which say the same as its JSON. */
async function expectShownForms(file: string, config: string, sink: SinkName): Promise<void> {
  const text = await render(file, config, sink)
  expectVisible(text)
  if (sink === 'webhook') return
  expectNoLink(text)
}

test.each(cases)(
  '$sink with $words: hostile samples stay text, in every form of render',
  async ({ sink, templates, at }) => {
    const config = aFile('tocsin.yaml', configText(templates))
    for (const [index, words] of samples.entries()) {
      const type = index % 2 === 0 ? 'paste' : words
      const file = aFile('event.json', JSON.stringify(hostileItem(words, type)))
      const shown = JSON.parse(await render(file, config, sink, '--output=json')) as Shown
      expect(shown.notes.filter((note) => note.includes('failed'))).toEqual([])
      for (const [name, value] of Object.entries(shown.headers ?? {})) {
        expect(headerNames).toContain(name)
        expect(value).toMatch(/^[\x21-\x7E]+(?: [\x21-\x7E]+)*$/u)
      }
      checks[sink](shown)
      expect(shown.text.includes('Own line')).toBe(sink !== 'webhook' && 'body' in templates)
      // Each sample in the drawn forms of some sinks, so that none of them takes long.
      if ((index + at) % 3 === 0) await expectShownForms(file, config, sink)
    }
  },
)

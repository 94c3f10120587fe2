/** One hostile event in every dialect: nothing of it becomes markup, a formula, a header or a link. */
import { createTransport } from 'nodemailer'
import { createCsv, toCsvRow } from '../../../src/messages/csv.ts'
import { composeMail } from '../../../src/sinks/email/email-sink.ts'
import type { Delivery, DeliveryMember } from '../../../src/sinks/sink.ts'
import { renderSlack } from '../../../src/sinks/slack/slack-message.ts'
import { renderTeams } from '../../../src/sinks/teams/teams-card.ts'
import {
  createEventRenderer,
  type RenderEvent,
  renderEventMessage,
} from '../../../src/sinks/templates.ts'
import { renderBody } from '../../../src/sinks/webhook/body.ts'
import { fuzzedMember } from '../engine/fuzzed-member.ts'
import { assertThat } from '../engine/target.ts'

export const dictionary = [
  '=cmd|',
  '@SUM(1)',
  '<!here>',
  '\r\nBcc: x@y.z',
  '=?UTF-8?Q?=0A?=',
  '<b>',
  '|',
]

const templates = {
  title: '{{ source }} <!{{ type }}> {{ notes }}',
  body: '{{ tags | join: "\\n" }}\n<b>{{ notes }}</b> [{{ type }}]({{ source }})\n{{ detail }} {{ highlights }}',
}

/** With the built-in look, and in words of its own. */
const renderers: readonly RenderEvent[] = [
  renderEventMessage,
  createEventRenderer(
    { name: 'a', templates },
    {
      clock: { monotonic: () => 0 },
      onTemplateFailure: ({ problem }) => assertThat(false, 'a template failed', problem),
    },
  ),
]

export async function fuzz(data: Uint8Array): Promise<void> {
  const member = fuzzedMember(data)
  if (member === undefined) return
  const delivery: Delivery = {
    id: '0123456789abcdef',
    destination: { id: 'a', label: 'a@b.example' },
    members: [member],
    attempt: 1,
    mayBeRepeat: false,
  }
  checkCsv(member)
  checkWebhook(delivery)
  for (const renderEvent of renderers) {
    checkSlack(delivery, renderEvent)
    checkTeams(delivery, renderEvent)
    await checkMail(delivery, renderEvent)
  }
}

function checkCsv(member: DeliveryMember): void {
  const text = Buffer.from(createCsv().add(toCsvRow(member)).finish()).toString()
  const lines = text.split('\r\n')
  assertThat(lines.length === 3, 'not one line for one event', text)
  const cells = [...(lines[1] ?? '').matchAll(/"((?:[^"]|"")*)"(?:,|$)/g)].map(
    ([, cell]) => cell ?? '',
  )
  assertThat(cells.length === 12, 'not twelve cells', lines[1])
  for (const cell of cells) {
    assertThat(!/^["`\s]*[=+\-@＝＋－＠]/u.test(cell), 'a formula', cell)
  }
}

function checkSlack(delivery: Delivery, renderEvent: RenderEvent): void {
  const { text = '', blocks = [] } = renderSlack(renderEvent(delivery), 'id')
  const shown = [text, ...textsIn(blocks)]
  for (const one of shown) {
    assertThat(!/[<>]|&(?!amp;|lt;|gt;)/.test(one), 'markup for Slack', one)
  }
}

/** Where Slack decodes or reads markup: what stands in rich text is taken as it is. */
function textsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  const { type, text } = value as { type?: unknown; text?: unknown }
  const isRead = type === 'plain_text' || type === 'mrkdwn'
  const own = isRead && typeof text === 'string' ? [text] : []
  return [...own, ...Object.values(value).flatMap(textsIn)]
}

/** Text runs interpret nothing; what other elements hold is Markdown. */
function checkTeams(delivery: Delivery, renderEvent: RenderEvent): void {
  const body = JSON.stringify(renderTeams(delivery, renderEvent))
  assertThat(Buffer.byteLength(body) <= 20_000, 'too large', body.length)
  assertThat(!/"type":"(?:TextBlock|FactSet)"|"entities"/.test(body), 'markup for Teams', body)
}

function checkWebhook(delivery: Delivery): void {
  const body = renderBody(delivery)
  assertThat(Buffer.byteLength(body) <= 20_000, 'too large', body.length)
  assertThat(renderBody({ ...delivery, attempt: 7 }) === body, 'another body at another attempt')
  const { data } = JSON.parse(body) as { data: { uid: string } }
  assertThat(data.uid === delivery.members[0]?.event.uid, 'another uid', data.uid)
}

const composer = createTransport({ streamTransport: true, buffer: true, newline: 'windows' })
const ownHeaders = new Set(
  'from to subject date message-id in-reply-to references auto-submitted x-auto-response-suppress list-id mime-version content-type importance x-priority'.split(
    ' ',
  ),
)

async function checkMail(delivery: Delivery, renderEvent: RenderEvent): Promise<void> {
  const from = 'Tocsin <t@b.example>'
  const options = { sink: 'oncall', from, to: 'a@b.example', nowMs: 0, renderEvent }
  const mail = composeMail(delivery, options)
  const { message } = (await composer.sendMail(mail)) as unknown as { message: Buffer }
  const [head = ''] = message.toString('latin1').split('\r\n\r\n')
  const names = head
    .split('\r\n')
    .filter((line) => !/^[ \t]/.test(line))
    .map((line) => line.slice(0, line.indexOf(':')).toLowerCase())
  const foreign = names.filter((name) => !ownHeaders.has(name))
  assertThat(foreign.length === 0, 'a header of the feed', foreign)
  assertThat(new Set(names).size === names.length, 'a header twice', names)
  const urgent = head.split('\r\n').filter((line) => /^(?:importance|x-priority):/i.test(line))
  const asWritten = ['', 'Importance: high,X-Priority: 1'].includes(urgent.join(','))
  assertThat(asWritten, 'an importance of the feed', urgent)
  assertThat(!/[\r\n]/.test(head.replaceAll('\r\n', '')), 'a bare line end in a header', head)
}

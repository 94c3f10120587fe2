/** One page with every message that there is, as each receiver shows it; nothing is sent. */
import { loadConfig, parseConfig } from '../../src/config/load.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createLogger } from '../../src/lib/logger.ts'
import { withoutExcerpts } from '../../src/masking/excerpts.ts'
import { titleOf } from '../../src/messages/message.ts'
import { drawMail, drawPage, type Html, markup } from '../../src/sandbox/drawing/html.ts'
import { drawSlack } from '../../src/sandbox/drawing/slack.ts'
import { drawTeams } from '../../src/sandbox/drawing/teams.ts'
import { type Delivery, type Preview, type Sink, SinkError } from '../../src/sinks/sink.ts'
import type { SinkParts } from '../../src/sinks/config.ts'
import { createSink } from '../../src/sinks/create-sink.ts'
import { formatTemplateFailure } from '../../src/sinks/templates/templates.ts'
import { moreScenes, otherScenes, type Scene, typeScenes } from '../support/scenes.ts'

/** A sink of every type. */
export const everySink = `
accounts: { main: { base_url: "https://api.example.com", api_key: none } }
feeds: { brand: { type: events, identifier_group: 1042 } }
sinks:
  slack: { type: slack, url: "https://hooks.slack.com/services/T0/B0/none" }
  teams: { type: teams, url: "https://none.logic.azure.com/workflows/none?sig=none" }
  email: { type: email, smtp: "smtps://mail.example.com", from: tocsin@example.com, to: [oncall@example.com] }
  pagerduty: { type: pagerduty, routing_key: "00000000000000000000000000000000" }
  webhook: { type: webhook, url: "https://siem.example.com/hook", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }
route: { sinks: [slack, teams, email, pagerduty, webhook] }
`

const typeNames: Readonly<Record<string, string>> = {
  slack: 'Slack',
  teams: 'Microsoft Teams',
  email: 'E-mail',
  pagerduty: 'PagerDuty',
  webhook: 'Webhook',
}

export type Previews = ReadonlyMap<string, Sink>

/** Sinks that are asked for previews alone: those of a configuration, else one of every type. */
export async function openSinks(
  { path }: GalleryOptions = {},
  onTemplateFailure?: SinkParts['onTemplateFailure'],
): Promise<Previews> {
  const { sinks: configured } =
    path === undefined
      ? parseConfig(everySink, { file: 'gallery.yaml', env: {} }).config
      : loadConfig({ path, env: process.env }).config
  const logger = createLogger({ level: 'silent' })
  const parts = { logger, clock: systemClock, onTemplateFailure }
  const sinks = configured.map(async (one) => createSink(one, parts))
  return new Map((await Promise.all(sinks)).map((sink) => [sink.name, sink]))
}

export const specialScenes: readonly Scene[] = [...otherScenes, ...moreScenes]

/** undefined: this sink gets no such message. */
export function previewOf(sinks: Previews, to: string, one: Delivery): Preview | undefined {
  const sink = sinks.get(to)
  const [destination] = sink?.destinations ?? []
  if (!sink?.preview || !destination) throw new Error(`there is no ${to}`)
  try {
    const { members } = one
    const shown = sink.hidesExcerpts === true ? members.map(withoutExcerpts) : members
    return sink.preview({ ...one, members: shown, destination })
  } catch (error) {
    if (error instanceof SinkError && error.reason === 'invalid') return undefined
    throw error
  }
}

interface GalleryOptions {
  /** A configuration, whose sinks are shown with their templates. Default: one of every type. */
  path?: string | undefined
}

export async function galleryPage(options: GalleryOptions = {}): Promise<string> {
  const failures: string[] = []
  const sinks = await openSinks(options, (failure) => {
    failures.push(formatTemplateFailure(failure))
  })
  const drawn: Drawn = { sinks, takeFailures: () => failures.splice(0), failed: 0 }
  try {
    const several = specialScenes.map((scene) => drawScene(drawn, scene, true))
    const types = typeScenes.map((scene) => drawScene(drawn, scene, false))
    return drawPage({
      title: 'Every message of Tocsin',
      content: markup`<h1>Every message of Tocsin</h1>
${drawFailures(drawn)}<p>Drawn from invented events by the code that sends them. Nothing here was sent. Slack and Teams are drawings; each mail is its own HTML in a frame that runs nothing.</p>
<h2 id="several">Kinds of messages</h2>${several}
<h2 id="types">Every type of event</h2>${types}`,
    })
  } finally {
    for (const sink of sinks.values()) await sink.close()
  }
}

interface Drawn {
  sinks: Previews
  /** What templates failed since it was asked last, and why. */
  takeFailures: () => string[]
  /** Messages so far that a template failed for. */
  failed: number
}

function drawFailures({ failed }: Drawn): Html | '' {
  if (failed === 0) return ''
  const said = failed === 1 ? '1 message has' : `${failed} messages have`
  return markup`<p class="unknown">${said} the built-in look, since a template failed: look for a frame like this one.</p>`
}

function drawScene(drawn: Drawn, [name, one]: Scene, isOpen: boolean): Html {
  const views = [...drawn.sinks.values()].map((sink) => {
    const preview = previewOf(drawn.sinks, sink.name, one)
    const failures = drawn.takeFailures()
    if (failures.length > 0) drawn.failed += 1
    return drawView(sink, { preview, failures }, name)
  })
  const content = markup`<div class="columns">${views}</div>`
  return isOpen
    ? markup`<section><h3>${name}</h3>${content}</section>`
    : markup`<details><summary>${name}: ${titleOfFirst(one)}</summary>${content}</details>`
}

interface View {
  preview: Preview | undefined
  failures: readonly string[]
}

function drawView({ name, type }: Sink, { preview, failures }: View, scene: string): Html {
  const heading = name === type ? (typeNames[type] ?? type) : name
  const failed = failures.map((said) => markup`<p class="unknown">${said}</p>`)
  return markup`<div><p class="soft">${heading}</p>${failed}${drawContent(type, preview, scene)}</div>`
}

function drawContent(to: string, preview: Preview | undefined, name: string): Html {
  if (preview === undefined) return markup`<p class="soft">gets no such message</p>`
  const { subject = '', text, html = '', body } = preview
  if (to === 'slack') return drawSlack(body)
  if (to === 'teams') return drawTeams(body)
  if (to !== 'email') return markup`<pre tabindex="0">${JSON.stringify(body, null, 2)}</pre>`
  return markup`<p><strong>${subject}</strong></p>${drawMail(`Mail: ${name}`, html)}<details><summary>As plain text</summary><pre>${text}</pre></details>`
}

function titleOfFirst({ members: [member] }: Delivery): string {
  return member === undefined ? '' : titleOf(member)
}

/** The page that shows what the mock receivers got, as it comes in. Works without a script. */
import type { FastifyInstance } from 'fastify'
import type { Inbox, Received, SinkName } from '../receivers/received.ts'
import { controlPrefix } from '../server.ts'
import { contentPolicy, drawMail, drawPage, type Html, markup } from './html.ts'
import { drawSlack } from './slack.ts'
import { drawTeams } from './teams.ts'

/** Path of the page. With `?still` it is not loaded again by itself. */
export const livePath = `${controlPrefix}received`

/** Newest messages of each receiver; the others are only counted. */
const maxShown = 12
const refreshSeconds = 2

const headers = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `${contentPolicy}; frame-ancestors 'none'`,
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

export function addLivePage(app: FastifyInstance, { received }: Pick<Inbox, 'received'>): void {
  app.get(livePath, (request, reply) => {
    const isStill = Object.hasOwn(request.query as object, 'still')
    return reply.headers(headers).send(drawReceived(received, { isStill }))
  })
}

const names: readonly (readonly [SinkName, string])[] = [
  ['slack', 'Slack'],
  ['teams', 'Microsoft Teams'],
  ['email', 'Mailboxes'],
  ['pagerduty', 'PagerDuty'],
  ['webhook', 'Webhooks'],
]

/** Draws the newest messages first; a receiver that got nothing is left out. */
export function drawReceived(
  received: Inbox['received'],
  { isStill }: { isStill: boolean },
): string {
  const columns = names
    .filter(([sink]) => received[sink].length > 0)
    .map(([sink, name]) => drawColumn(name, received[sink]))
  const turn = isStill
    ? markup`<a href="${livePath}">Go on</a>`
    : markup`Loaded anew every ${refreshSeconds} s. <a href="${livePath}?still">Stand still</a>`
  const content = markup`<h1>What arrives</h1><p class="soft">The messages that the pretend receivers took, drawn from what was sent. ${turn}</p>${columns.length === 0 ? markup`<p>Nothing yet.</p>` : markup`<div class="columns">${columns}</div>`}`
  return drawPage({
    title: 'What arrives',
    content,
    refreshSeconds: isStill ? undefined : refreshSeconds,
  })
}

function drawColumn(name: string, messages: readonly Received[]): Html {
  const newest = messages.slice(-maxShown).toReversed()
  const more = messages.length - newest.length
  const shown = newest.map((message, at) => drawOne(message, at === 0))
  return markup`<section><h2>${name}: ${messages.length}</h2>${shown}${more > 0 ? markup`<p class="soft">and ${more} before these</p>` : ''}</section>`
}

function drawOne(message: Received, isNewest: boolean): Html {
  const { sink, atMs, to, json, mail, body } = message
  const place = sink === 'email' ? ` to ${to}` : ''
  const head = markup`<p class="soft">${new Date(atMs).toISOString().slice(11, 19)} UTC${place}</p>`
  if (sink === 'slack') return markup`${head}${drawSlack(json)}`
  if (sink === 'teams') return markup`${head}${drawTeams(json)}`
  if (mail === null)
    return markup`${head}<pre>${cut(json === null ? body : JSON.stringify(json, null, 2))}</pre>`
  const { subject, text, html, attachments } = mail
  const files = attachments.map(({ name }) => markup` <span class="app">${name}</span>`)
  const content = isNewest
    ? drawMail(`Mail: ${subject}`, html)
    : markup`<details><summary>As plain text</summary><pre>${text}</pre></details>`
  return markup`${head}<p><strong>${subject}</strong>${files}</p>${content}`
}

const maxJsonLength = 1500

function cut(text: string): string {
  if (text.length <= maxJsonLength) return text
  return `${text.slice(0, maxJsonLength)}\n… and ${text.length - maxJsonLength} characters more`
}

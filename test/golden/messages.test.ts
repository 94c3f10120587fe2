/**
 * What people and machines get, letter by letter, so that a change of structure is seen to change none of it.
 * `npm run golden` records anew what was meant to change.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { composeMail } from '../../src/sinks/email/email-sink.ts'
import type { Delivery } from '../../src/sinks/sink.ts'
import { renderIncident } from '../../src/sinks/pagerduty/pagerduty-sink.ts'
import { previewSlack } from '../../src/sinks/slack/slack-message.ts'
import { cardText, renderTeams } from '../../src/sinks/teams/teams-card.ts'
import { renderBody } from '../../src/sinks/webhook/body.ts'
import { moreScenes, otherScenes, type Scene, typeScenes } from '../support/scenes.ts'
import { jsonLines } from './json-lines.ts'

function mailOf(one: Delivery): Record<string, unknown> & { text: string; html: string } {
  const options = { sink: 'oncall', from: 'Tocsin <t@example.com>', to: 'a@example.com', nowMs: 0 }
  const { text, html, ...head } = composeMail(one, options)
  return { ...head, text: text as string, html: html as string }
}

/** `depth`: how many levels of a message stand on lines of their own. */
function inJson(scenes: Scene[], depth: number, render: (one: Delivery) => unknown): string {
  const messages = Object.fromEntries(scenes.map(([name, one]) => [name, render(one)]))
  return `${jsonLines(messages, { depth: depth + 1 })}\n`
}

const all = [...typeScenes, ...otherScenes, ...moreScenes]

test('Slack gets what it got', async () => {
  expect(all.length).toBeGreaterThan(90)
  await expect(inJson(all, 3, previewSlack)).toMatchFileSnapshot('recorded/slack.json')
})

test('Teams gets what it got', async () => {
  const texts = all.map(([name, one]) => `==== ${name}\n${cardText(renderTeams(one))}\n`)
  await expect(texts.join('\n')).toMatchFileSnapshot('recorded/teams.txt')
  await expect(inJson(all, 5, renderTeams)).toMatchFileSnapshot('recorded/teams.json')
})

test('PagerDuty gets what it got', async () => {
  const incidents = all.filter(([, { summary }]) => summary?.kind !== 'digest')
  expect(incidents.length).toBe(all.length - 5)
  await expect(inJson(incidents, 3, renderIncident)).toMatchFileSnapshot('recorded/pagerduty.json')
})

test('webhooks get what they got', async () => {
  const bodies = inJson(
    all.filter(([, { members }]) => members.length > 0),
    3,
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

const recorded = join(import.meta.dirname, 'recorded')
/** The help describes services that answer null. */
const recordings = readdirSync(recorded, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.includes('.') && name !== 'help.txt',
)

/** A value of JSON that is null stands behind its key or on a line of its own. */
const nothingSaid = /(?<!": ?|^\s*)\bnull\b|\bundefined\b|\bNaN\b|\[object/m

test.each(recordings)('%s says nothing of what is not there', (name) => {
  const text = readFileSync(join(recorded, name), 'utf8')
  const lines = text.split('\n').filter((line) => nothingSaid.test(line))
  expect(lines).toEqual([])
})

/** What every message to people keeps to (docs/analysts.md), over one message of every type and kind. */
import { describe, expect, test } from 'vitest'
import { renderMessage } from '../../../src/messages/message.ts'
import { renderSummary } from '../../../src/messages/summary-message.ts'
import { severityLabel } from '../../../src/messages/summary.ts'
import { mailContent } from '../../../src/sinks/email/email-sink.ts'
import { renderIncident } from '../../../src/sinks/pagerduty/pagerduty-sink.ts'
import type { Delivery } from '../../../src/sinks/sink.ts'
import { mrkdwnText, previewSlack } from '../../../src/sinks/slack/slack-message.ts'
import { cardText, renderTeams } from '../../../src/sinks/teams/teams-card.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { delivery, otherScenes, typeScenes } from '../../support/scenes.ts'
import { summarised } from '../../support/summaries.ts'
import { showTemplated } from '../../support/templated-sinks.ts'

const scenes = [...typeScenes, ...otherScenes]

function titleOf(one: Delivery): string {
  const { summary } = one
  if (summary) return renderSummary({ ...one, summary }).headline
  return renderMessage(one.members[0]!, one).title
}

/** The line that a message begins with: severity, what, whose, where. */
function linesOf(one: Delivery): { inHeader: string; inText: string } {
  const { summary } = one
  const title = titleOf(one)
  if (summary === undefined) {
    const { severity, summary: inText } = renderMessage(one.members[0]!, one)
    return { inHeader: `${severityLabel(severity)} · ${title}`, inText }
  }
  const { severity, subject } = renderSummary({ ...one, summary })
  return {
    inHeader: severity === null ? title : `${severityLabel(severity)} · ${title}`,
    inText: subject,
  }
}

/** Entities as a reader sees them. */
function decode(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

describe.each(scenes)('the message about %s', (_name, one) => {
  test('stands in the first block of Slack and in its text, which phones and screen readers take', () => {
    const { inBlocks, plainText } = previewSlack(one)
    const [first] = (inBlocks.blocks ?? []) as { type: string; text?: { text: string } }[]
    expect(first?.type).toBe('header')
    const header = decode(first?.text?.text ?? '')
    const { inHeader, inText } = linesOf(one)
    const words = header.replace(/^\p{Emoji_Presentation} /u, '')
    expect(words.length).toBeGreaterThan(20)
    expect(words.endsWith('…') ? inHeader.startsWith(words.slice(0, -1)) : words === inHeader).toBe(
      true,
    )
    const [blockText, fallback] = [inBlocks, plainText].map(({ text = '' }) => text.split('\n')[0])
    expect(blockText).toBe(mrkdwnText(inText, 3000))
    const [asHeader = ''] = (fallback ?? '').split(/^\p{Emoji_Presentation} /u).slice(-1)
    expect(asHeader).toBe(mrkdwnText(one.summary ? inHeader : inText, 3000))
  })

  test('tells in an inbox, beside the subject, what the subject does not', () => {
    const { subject, html } = mailContent(one, 'oncall')
    const [, lead = ''] = /<div style="display:none[^>]*>([^<]*)<\/div>/.exec(html) ?? []
    expect(lead.length).toBeGreaterThan(10)
    const words = subject.replace(/^\[[^\]]*\] /, '').slice(0, 30)
    expect(decode(lead)).not.toContain(words)
    expect(decode(/<title>([^<]*)<\/title>/.exec(html)?.[1] ?? '')).toContain(words)
  })

  test('says in words what its colours say', () => {
    const { html } = mailContent(one, 'oncall')
    const chips = [...html.matchAll(/<span style="[^"]*color:#ffffff[^"]*">([^<]*)<\/span>/g)]
    for (const [, text] of chips)
      expect(text).toMatch(/critical|high|medium|low|info|unknown|behind/i)
    const rows = html.match(/<td width="4" bgcolor/g) ?? []
    expect(chips.length).toBeGreaterThanOrEqual(rows.length)
    const squares = JSON.stringify(previewSlack(one).inBlocks).matchAll(/[🟥🟧🟨🟦⬜] (\S+)/gu)
    for (const [, word] of squares)
      expect(word).toMatch(/^(?:CRITICAL|HIGH|MEDIUM|LOW|INFO|UNKNOWN)/)
  })

  test('has a contrast of 4.5 where words stand on a colour, and of 3 for the colour on light and dark', () => {
    const { html } = mailContent(one, 'oncall')
    for (const [, colour = ''] of html.matchAll(/color:#ffffff;background-color:(#[0-9a-f]{6})/g)) {
      expect(contrast('#ffffff', colour)).toBeGreaterThanOrEqual(4.5)
    }
    const colours = [...html.matchAll(/(?:bgcolor="|background-color:|solid )(#[0-9a-f]{6})/g)]
    for (const [, colour = ''] of colours) {
      expect(contrast('#ffffff', colour)).toBeGreaterThanOrEqual(3)
      expect(contrast('#121212', colour)).toBeGreaterThanOrEqual(3)
    }
  })

  test('is laid out by tables that are none to a screen reader, and has its headings in order', () => {
    const { html } = mailContent(one, 'oncall')
    const tables = html.match(/<table\b[^>]*/g) ?? []
    expect(tables.filter((tag) => !tag.includes('role="presentation"'))).toEqual([])
    const [first, ...others] = [...html.matchAll(/<h(\d)/g)].map(([, level]) => level)
    expect(first).toBe('1')
    expect(others.filter((level) => level !== '2')).toEqual([])
  })

  test('stays below the 102 kB at which mail programs clip', () => {
    const { html, text } = mailContent(one, 'oncall')
    expect(Buffer.byteLength(html)).toBeLessThan(102_000)
    expect(Buffer.byteLength(text)).toBeLessThan(102_000)
  })
})

/** WCAG 2.2, relative luminance. */
function contrast(one: string, other: string): number {
  const luminance = (colour: string): number => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

function saidOf(one: Delivery): string[] {
  const { subject, text, html } = mailContent(one, 'oncall')
  const slack = previewSlack(one)
  return [
    `${subject}\n${text}`,
    html.replaceAll(/<[^>]*>/g, ''),
    JSON.stringify(slack.inBlocks.blocks),
    slack.plainText.text ?? '',
    cardText(renderTeams(one)),
    JSON.stringify(renderIncident(one)),
  ]
}

const marks = /TEST|repeat|raised|ignored|remediated/gi

describe('what kind of news it is', () => {
  const event = aThreatEvent()
  const atMs = Date.UTC(2026, 10, 2)
  const kinds: [string, Delivery, string[]][] = [
    ['new', delivery([aMember()]), []],
    ['a repeat', delivery([aMember()], { attempt: 2, mayBeRepeat: true }), ['repeat']],
    ['raised', delivery([aMember({ raisedFrom: 'low' })]), ['raised']],
    ['closed', delivery([aMember({ event: { ...event, ignoredAtMs: atMs } })]), ['ignored']],
    [
      'remedied',
      delivery([aMember({ event: { ...event, remediatedAtMs: atMs } })]),
      ['remediated'],
    ],
    ['a test', delivery([aMember()], { isTest: true }), ['TEST']],
  ]

  test.each(kinds)('of one event, %s, is said in words by every look', (_kind, one, words) => {
    for (const said of saidOf(one)) {
      const found = new Set((said.match(marks) ?? []).map((mark) => mark.toLowerCase()))
      expect([...found]).toEqual(words.map((word) => word.toLowerCase()))
    }
  })

  test('of an event among several is said in its line', () => {
    const members = [
      aMember({ raisedFrom: 'low' }),
      aMember({ event: { ...event, ignoredAtMs: atMs } }),
      aMember({ event: { ...event, remediatedAtMs: atMs } }),
    ]
    for (const said of saidOf(delivery(members, summarised(members)))) {
      for (const word of ['raised from low', 'ignored', 'remediated']) expect(said).toContain(word)
    }
  })
})

test.each(['slack', 'teams', 'email', 'pagerduty'] as const)(
  'a link that nobody vouches for is told as text: %s',
  async (type) => {
    const event = aThreatEvent({ url: 'https://evil.example/login' })
    const { preview } = await showTemplated(type, {}, { members: [aMember({ event, link: null })] })
    const shown = JSON.stringify([preview.text, preview.html, preview.body])
    expect(shown).toMatch(/unverified link(?:: |.{1,200}>)hxxps:\/\/evil\[\.\]example\/login/i)
    expect(shown).not.toContain('https://evil')
  },
)

test('every look counts each severity of a group, and says what its events have in common', () => {
  const members = ['high', 'medium', 'low'].map((severity) =>
    aMember({ event: aThreatEvent({ severity }) }),
  )
  const common = '1 high, 1 medium, 1 low — stealer logs of feed brand (team x)'
  for (const said of saidOf(delivery(members, summarised(members, { labels: { team: 'x' } })))) {
    expect(said.replaceAll(/\s+(?:\| )?/gu, ' ')).toContain(common)
  }
})

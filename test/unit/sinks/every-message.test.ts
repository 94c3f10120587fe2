/** What every message to people keeps to (docs/analysts.md), over one message of every type and kind. */
import { describe, expect, test } from 'vitest'
import { mailContent } from '../../../src/sinks/email/email-sink.ts'
import { previewSlack } from '../../../src/sinks/slack/slack-message.ts'
import { aMember } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import { otherScenes, typeScenes } from '../../support/scenes.ts'
import { showTemplated } from '../../support/templated-sinks.ts'

const scenes = [...typeScenes, ...otherScenes]

describe.each(scenes)('the message about %s', (_name, one) => {
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

import { describe, expect, test } from 'vitest'
import { mailContent } from '../../src/sinks/email/email-sink.ts'
import type { Delivery } from '../../src/sinks/sink.ts'
import {
  hasChromium,
  inChromium,
  type Rendering,
  endBrowserAfterTests,
} from '../support/chromium.ts'
import { barsIn, extentOf, textsIn } from '../support/mail-in-page.ts'
import { aMember } from '../support/deliveries.ts'
import { aThreatEvent } from '../support/events.ts'
import { aBusyDigest, summarised } from '../support/summaries.ts'

endBrowserAfterTests()

const renderings: Rendering[] = [
  { width: 360, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
  { width: 1000, colorScheme: 'light' },
]

function htmlOf(content: Pick<Delivery, 'members' | 'summary'>): string {
  const delivery = { id: 'abc', destination: { id: 'oncall', label: 'x' }, attempt: 1 }
  return mailContent({ ...delivery, mayBeRepeat: false, ...content }, 'oncall').html
}

const words = 'W'.repeat(5000)
const unbroken = Array.from({ length: 5 }, () =>
  aMember({
    feed: 'f'.repeat(40),
    event: aThreatEvent({
      type: 'x'.repeat(200),
      severity: words,
      identifiers: [{ id: 1, name: words }],
    }),
  }),
)

describe.skipIf(!hasChromium())('a digest in a browser', () => {
  test.each(renderings)(
    'is one column without overflow at $width px in $colorScheme',
    async (rendering) => {
      for (const content of [aBusyDigest(), summarised(unbroken)]) {
        const { scroll, widest } = await inChromium(htmlOf(content), rendering, extentOf)
        expect(scroll).toBeLessThanOrEqual(rendering.width)
        expect(widest).toBeLessThanOrEqual(rendering.width)
      }
    },
  )

  test('the bars of the days are as long as the days were busy', async () => {
    const { members, summary } = aBusyDigest()
    const busiest = Math.max(...summary!.digest!.perDay.map(totalOf))
    const bars = await inChromium(htmlOf({ members, summary: summary! }), renderings[0]!, barsIn)
    const expected = summary!.digest!.perDay.flatMap((day) =>
      day.bySeverity.map(() => totalOf(day) / busiest),
    )
    expect(bars).toHaveLength(expected.length)
    const longest = Math.max(...bars.map(({ row }) => row))
    expect(longest).toBeGreaterThan(150)
    for (const [index, { width, height, row }] of bars.entries()) {
      expect(width).toBeGreaterThan(5)
      expect(height).toBeGreaterThanOrEqual(10)
      expect(Math.abs(row / longest - expected[index]!)).toBeLessThan(0.05)
    }
  })

  test.each(renderings)(
    'every text can be read at $width px in $colorScheme: a contrast of 4.5 and 11 px',
    async (rendering) => {
      const seen = [
        ...(await inChromium(htmlOf(aBusyDigest()), rendering, textsIn)),
        ...(await inChromium(htmlOf({ members: [aMember()] }), rendering, textsIn)),
      ]
      expect(seen.length).toBeGreaterThan(115)
      const page = rendering.colorScheme === 'dark' ? nearBlack : white
      const unreadable = seen.filter(({ size, colour, background, opacity }) => {
        const behind = background ?? page
        const shown = colour.map((part, at) => part * opacity + behind[at]! * (1 - opacity))
        return contrast(shown, behind) < 4.5 || size < 11
      })
      expect(unreadable).toEqual([])
    },
  )
})

const white = [255, 255, 255]
const nearBlack = [18, 18, 18]

function totalOf({ bySeverity }: { bySeverity: { count: number }[] }): number {
  return bySeverity.reduce((sum, { count }) => sum + count, 0)
}

/** WCAG 2.2, relative luminance and contrast ratio. */
function contrast(a: number[], b: number[]): number {
  const [light, dark] = [luminance(a), luminance(b)].toSorted((x, y) => y - x)
  return (light! + 0.05) / (dark! + 0.05)
}

function luminance(colour: number[]): number {
  const [red, green, blue] = colour
    .map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}

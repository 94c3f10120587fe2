import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { mailContent } from '../../src/sinks/email/email-sink.ts'
import type { Delivery } from '../../src/sinks/sink.ts'
import {
  hasChromium,
  inChromium,
  type Rendering,
  endBrowserAfterTests,
} from '../support/chromium.ts'
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
})

function totalOf({ bySeverity }: { bySeverity: { count: number }[] }): number {
  return bySeverity.reduce((sum, { count }) => sum + count, 0)
}

interface Extent {
  scroll: number
  /** The right edge of the element that reaches farthest. */
  widest: number
}

function extentOf(page: Page): Promise<Extent> {
  return page.evaluate<Extent>(`({
    scroll: document.documentElement.scrollWidth,
    widest: Math.max(
      ...[...document.querySelectorAll('body *')].map((each) => each.getBoundingClientRect().right),
    ),
  })`)
}

interface Bar {
  width: number
  height: number
  /** The width of the whole bar that this is a part of. */
  row: number
}

function barsIn(page: Page): Promise<Bar[]> {
  return page.evaluate<Bar[]>(`
    [...document.querySelectorAll('td[height="12"][bgcolor]')].map((cell) => ({
      width: cell.getBoundingClientRect().width,
      height: cell.getBoundingClientRect().height,
      row: cell.closest('table').getBoundingClientRect().width,
    }))`)
}

/** Every view in a real browser: hostile text stays text, the keyboard reaches all, no script is needed. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { createRenderer } from '../../src/page/output/render.ts'
import { removeInvisible } from '../../src/messages/sanitize.ts'
import { hasChromium, sharedBrowser, endBrowserAfterTests } from '../support/chromium.ts'
import { type PageLook, withPage } from '../support/page-in-chromium.ts'
import { type PageSample, pageSamples } from '../support/page-samples.ts'
import { actedUpon, allHostileWords } from '../security/hostile-words.ts'

endBrowserAfterTests()

const { render } = createRenderer()
const desktop: PageLook = { width: 1280, colorScheme: 'light' }
const phone: PageLook = { width: 320, colorScheme: 'dark' }

/** All that could run or turn, behind an address that runs. */
const acting = [
  `javascript:window.ran=1//"'><script>window.ran=1</script><img src=x onerror="window.ran=1">`,
  `</title></table></main><!-- {{7*7}} {% raw %}{{ page.tokens }}{% endraw %} \${7*7} <%= 7*7 %>`,
  `${allHostileWords}\u202E\u2066z`,
].join(' ')

/** What feeds, receivers and users may write. Each stands in every field of every view. */
const hostileTexts: readonly (readonly [what: string, text: string])[] = [
  ['what acts', acting],
  ['a word of 5,000 characters', 'W'.repeat(5000)],
  ['5,000 characters from right to left', '\u05D0\u05D1\u202E '.repeat(1250)],
]

async function inView<T>(
  sample: PageSample,
  look: PageLook,
  see: (page: Page) => Promise<T>,
): Promise<T> {
  const html = (): string => render(sample.view, sample.data)
  return withPage(await sharedBrowser(), html, look, see)
}

/** The same sample with one text for every other; of its lists the first entries. */
function filledWith(text: string, { view, data }: PageSample): PageSample {
  const filled = fill(data, text) as PageSample['data']
  const tokens = { [text]: text, '/sign-out': text }
  return { view, data: { ...filled, page: { ...filled.page, view, tokens } } } as PageSample
}

function fill(value: unknown, text: string): unknown {
  if (typeof value === 'string') return text
  if (Array.isArray(value)) return value.slice(0, 4).map((one) => fill(one, text))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fill(one, text)]))
}

/** Elements with the names of their attributes, in order. */
const structure = `[...document.querySelectorAll('*')].map((one) => [one.tagName, ...one.getAttributeNames().filter((name) => name !== 'title')].join(' '))`

interface Seen {
  structure: string[]
  text: string
  ran: unknown
  /** Where links and forms lead. */
  targets: string[]
  widest: number
}

const see = `({
  structure: ${structure},
  text: document.querySelector('main').textContent,
  ran: window.ran ?? null,
  targets: [...new Set([...document.querySelectorAll('[href], [action], [formaction]')].map((one) => new URL(one.formAction || one.action || one.href).origin))],
  widest: document.documentElement.scrollWidth,
})`

describe.skipIf(!hasChromium())('hostile text in every field', () => {
  test.each(pageSamples)('of $view stays text, and breaks no layout', async (sample) => {
    for (const look of [desktop, phone]) {
      let shown = filledWith('x', sample)
      const html = (): string => render(shown.view, shown.data)
      await withPage(await sharedBrowser(), html, look, async (page) => {
        const harmless = await page.evaluate<string[]>(structure)
        for (const [what, text] of hostileTexts) {
          shown = filledWith(text, sample)
          await page.reload()
          const seen = await page.evaluate<Seen>(see)
          expect({ what, ...seen }).toMatchObject({
            what,
            ran: null,
            structure: harmless,
            targets: ['http://tocsin.test'],
          })
          expect(seen.text.replaceAll(/[\n\t]/g, '')).not.toMatch(actedUpon)
          expect(spaced(seen.text)).toContain(spaced(removeInvisible(text)))
          expect(seen.widest).toBeLessThanOrEqual(look.width)
        }
      })
    }
  })
})

function spaced(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

interface Stop {
  at: number
  isShown: boolean
  hasOutline: boolean
}

/** Where the focus is, among all that can take it, in the order of the document. */
const stop = `(() => {
  const all = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary, [tabindex="0"]')]
  const at = document.activeElement
  const box = at.getBoundingClientRect()
  const style = getComputedStyle(at)
  return {
    at: all.filter((one) => one.checkVisibility()).indexOf(at),
    isShown: box.width > 0 && box.bottom > 0 && box.top < innerHeight,
    hasOutline: style.outlineStyle !== 'none' && Number.parseFloat(style.outlineWidth) >= 1,
  }
})()`

describe.skipIf(!hasChromium())('the keyboard', () => {
  test.each(pageSamples)(
    'reaches all of $view in order, seen, and leaves it again',
    async (sample) => {
      const stops = await inView(sample, desktop, async (page) => {
        const passed: Stop[] = []
        for (let presses = 0; presses < 400; presses += 1) {
          await page.keyboard.press('Tab')
          const next = await page.evaluate<Stop>(stop)
          if (next.at === -1) break
          passed.push(next)
        }
        return passed
      })
      expect(stops.map(({ at }) => at)).toEqual(stops.map((_, at) => at))
      expect(stops.filter(({ isShown, hasOutline }) => !isShown || !hasOutline)).toEqual([])
      expect(stops.length).toBeGreaterThan(3)
    },
  )

  test('skips to the content first', async () => {
    const focused = await inView(pageSamples[1]!, desktop, async (page) => {
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      return page.evaluate<string>('document.activeElement.id')
    })
    expect(focused).toBe('main')
  })

  test('opens what asks before an act', async () => {
    const isSeen = await inView(pageSamples[2]!, desktop, async (page) => {
      await page.locator('details.ask summary').focus()
      await page.keyboard.press('Enter')
      return page.locator('details.ask button').isVisible()
    })
    expect(isSeen).toBe(true)
  })
})

/** Whether the bar of acts lies over the box that a row begins with. */
const isCovered = `(() => {
  const box = document.querySelector('.items input').getBoundingClientRect()
  return document.elementFromPoint(box.x + 5, box.y + 5).closest('.sticky') !== null
})()`

describe.skipIf(!hasChromium())('on a phone, the bar of acts', () => {
  const notTold = pageSamples.find(({ view }) => view === 'not-told')!
  const scroll = (block: string): string =>
    `document.querySelector('.items input').scrollIntoView({ block: '${block}' })`

  test('covers no row before one is chosen, and is at hand then', async () => {
    await inView(notTold, { ...phone, width: 390 }, async (page) => {
      await page.evaluate(`document.documentElement.style.scrollPadding = 0; ${scroll('end')}`)
      expect(await page.evaluate(isCovered)).toBe(false)
      await page.locator('.items input').first().check()
      await page.evaluate(scroll('center'))
      const { y, height } = (await page.locator('.sticky').boundingBox())!
      expect(y + height).toBeLessThanOrEqual(900)
      await page.evaluate(`document.documentElement.style.scrollPadding = ''; ${scroll('end')}`)
      expect(await page.evaluate(isCovered)).toBe(false)
    })
  })
})

describe.skipIf(!hasChromium())('without script', () => {
  test.each(pageSamples)(
    '$view shows times in UTC, and no button that does nothing',
    async (sample) => {
      const seen = await inView(sample, { ...desktop, hasScript: false }, async (page) => ({
        times: await page.locator('time:not([data-clock])').allTextContents(),
        refreshing: await page.locator('.fresh').count(),
        zone: await page.locator('[data-zone]').textContent(),
      }))
      expect(seen.times.length).toBeGreaterThan(0)
      expect(
        seen.times.filter((time) => !/^\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC$/.test(time)),
      ).toEqual([])
      expect(seen).toMatchObject({ refreshing: 0, zone: 'Times are UTC' })
    },
  )
})

describe.skipIf(!hasChromium())('with script', () => {
  test('times are the reader’s own, with UTC in the title', async () => {
    const time = await inView(pageSamples[1]!, desktop, async (page) => {
      const first = page.locator('td time').first()
      return [await first.textContent(), await first.getAttribute('title')]
    })
    expect(time).toEqual(['2026-11-27 09:09', '2026-11-27 08:09:00 UTC'])
  })

  test('Now says how long ago something began', async () => {
    const text = await inView(pageSamples[0]!, desktop, (page) =>
      page.locator('[data-relative]').first().textContent(),
    )
    expect(text).toBe('1 hour ago')
  })

  test('Now refreshes every 30 s and says what changed, but not while it is paused or in use', async () => {
    const sample = pageSamples[0]!
    let asked = 0
    const html = (): string =>
      render('now', { ...sample.data, sentence: `It was asked ${(asked += 1)} times.` } as never)
    await withPage(await sharedBrowser(), html, desktop, async (page) => {
      const heading = page.locator('h1')
      const pause = page.locator('.fresh button')
      await page.clock.runFor(30_000)
      await expect.poll(() => heading.textContent()).toContain('asked 2 times')
      expect(await page.locator('#announce').textContent()).toContain('asked 2 times')
      await pause.click()
      await page.clock.runFor(90_000)
      expect(asked).toBe(2)
      await pause.click()
      await expect.poll(() => heading.textContent()).toContain('asked 3 times')
      await page.locator('main details summary').first().click()
      await page.clock.runFor(90_000)
      expect(asked).toBe(3)
    })
  })

  test('Now says so where it can no longer be refreshed', async () => {
    await inView(pageSamples[0]!, desktop, async (page) => {
      await page.route('**/*', (route) => route.abort())
      await page.clock.runFor(30_000)
      await expect
        .poll(() => page.locator('.fresh').textContent())
        .toContain('Not refreshed: load the page again')
    })
  })
})

describe.skipIf(!hasChromium())('an address with a name and a password behind #', () => {
  const signIn = pageSamples.find(({ view }) => view === 'sign-in')!
  const values = `[...document.querySelectorAll('main label input')].map((one) => one.value)`

  test('fills and sends no form but the demo’s: no site signs anybody in by a link', async () => {
    await inView(signIn, desktop, async (page) => {
      const sent: string[] = []
      page.on('request', (one) => void (one.method() === 'POST' && sent.push(one.url())))
      await page.goto('http://127.0.0.1:9464/sign-in#mara:password')
      await page.waitForLoadState('networkidle')
      expect([await page.evaluate(values), sent]).toEqual([['', ''], []])
    })
  })

  test('signs in to the demo, and is gone from the address', async () => {
    const demo = { ...signIn, data: { ...signIn.data, demo: true } } as PageSample
    await inView(demo, desktop, async (page) => {
      const sending = page.waitForRequest((one) => one.method() === 'POST')
      await page.goto('http://127.0.0.1:9464/sign-in?next=/told#demo:a%20long:password')
      const sent = await sending
      expect([sent.url(), sent.postData()]).toEqual([
        'http://127.0.0.1:9464/sign-in',
        'next=%2Ftold&name=demo&password=a+long%3Apassword',
      ])
    })
  })
})

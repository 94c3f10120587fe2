/** axe-core in a real browser over every kind of mail. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { mailContent } from '../../src/sinks/email/email-sink.ts'
import { drawMail, drawPage, markup } from '../../src/sandbox/drawing/html.ts'
import { specialScenes } from '../gallery/page.ts'
import { axeFindingsIn } from '../support/axe.ts'
import {
  hasChromium,
  inChromium,
  type Rendering,
  endBrowserAfterTests,
} from '../support/chromium.ts'
import { typeScenes } from '../support/scenes.ts'

endBrowserAfterTests()

const renderings: Rendering[] = [
  { width: 360, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
  { width: 1000, colorScheme: 'light' },
]

/** Types differ in facts and extract alone. */
const fullEvents = typeScenes.filter(([name]) => name.endsWith('with the full event')).slice(0, 6)
const mails = [...specialScenes, ...fullEvents].map(
  ([name, delivery]) => [name, mailContent(delivery, 'oncall').html] as const,
)

/** A mail stands within the page of a mail program, which has the landmarks. */
const pageRules = { 'landmark-one-main': { enabled: false }, region: { enabled: false } }

async function findingsIn(page: Page, rules = {}): Promise<string[]> {
  // axe takes a page without a ground for white; a dark one is nearly black
  await page.evaluate(`if (matchMedia('(prefers-color-scheme: dark)').matches)
    document.documentElement.style.backgroundColor = '#121212'`)
  return axeFindingsIn(page, rules)
}

async function findingsOf(
  pages: readonly (readonly [name: string, html: string])[],
  rendering: Rendering,
  rules = {},
): Promise<string[]> {
  const findings: string[] = []
  for (const [name, html] of pages) {
    const found = await inChromium(html, rendering, (page) => findingsIn(page, rules))
    findings.push(...found.map((finding) => `${name}: ${finding}`))
  }
  return findings
}

test.each(mails)('%s states its language and its direction', (_name, html) => {
  expect(html).toContain('<html lang="en" dir="ltr">')
})

describe.skipIf(!hasChromium())('in a browser', () => {
  test('axe finds nothing in any kind of mail on a phone', async () => {
    expect(await findingsOf(mails, renderings[0]!, pageRules)).toEqual([])
  })

  test('no mail is wider than a phone', async () => {
    for (const [name, html] of mails) {
      const width = await inChromium(html, renderings[0]!, (page) =>
        page.evaluate<number>('document.documentElement.scrollWidth'),
      )
      expect({ name, isWider: width > 360 }).toEqual({ name, isWider: false })
    }
  })

  test.each(renderings.slice(1))(
    'axe finds nothing in mails of each kind at $width px in $colorScheme',
    async (rendering) => {
      const kinds = mails.filter(([name]) => /^(a (group|digest|test)|stealer_log)/.test(name))
      expect(kinds.length).toBeGreaterThan(4)
      expect(await findingsOf(kinds, rendering, pageRules)).toEqual([])
    },
  )

  test('a mail stands on the ground that its words are made for, dark on light or light on dark', async () => {
    const html = drawPage({ title: 'Mail', content: drawMail('Mail', mails[0]![1]) })
    for (const rendering of renderings.slice(0, 2)) {
      const seen = await inChromium(html, rendering, async (page) => {
        await page.locator('iframe').contentFrame().locator('h1').waitFor()
        const [ground, frame] = await page.evaluate<string[]>(
          `[document.body, document.querySelector('iframe')].map((one) => getComputedStyle(one).backgroundColor)`,
        )
        return { ground, frame }
      })
      const ground = rendering.colorScheme === 'dark' ? 'rgb(18, 18, 20)' : 'rgb(255, 255, 255)'
      expect(seen).toEqual({ ground, frame: 'rgba(0, 0, 0, 0)' })
    }
  })

  test('axe finds what is wrong: words that cannot be told from their ground', async () => {
    const content = markup`<h1>A page</h1><p class="unseen">faint</p>`
    const html = drawPage({ title: 'A page', content }).replace(
      '</style>',
      '.unseen { color: #ccc }</style>',
    )
    const findings = await inChromium(html, renderings[0]!, (page) => findingsIn(page))
    expect(findings).toEqual([expect.stringMatching(/^color-contrast: .*faint/)])
  })
})

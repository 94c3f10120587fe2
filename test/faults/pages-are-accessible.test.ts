/** axe-core in a real browser over every view of the page, as full and as empty as it gets. */
import { describe, expect, test } from 'vitest'
import { createRenderer } from '../../src/page/output/render.ts'
import { axeFindingsIn } from '../support/axe.ts'
import { hasChromium, sharedBrowser, endBrowserAfterTests } from '../support/chromium.ts'
import { type PageLook, withPage } from '../support/page-in-chromium.ts'
import { emptySamples, pageSamples } from '../support/page-samples.ts'

endBrowserAfterTests()

const looks: readonly (PageLook & { name: string })[] = [
  { name: 'in the light', width: 1280, colorScheme: 'light' },
  { name: 'in the dark', width: 1280, colorScheme: 'dark' },
  { name: 'with forced colours', width: 1280, colorScheme: 'light', forcedColors: 'active' },
  { name: 'at 320 px', width: 320, colorScheme: 'light' },
  // a window of 1280 px at 200 %
  { name: 'at 640 px in the dark', width: 640, colorScheme: 'dark' },
]

const { render } = createRenderer()

describe.skipIf(!hasChromium()).each(looks)('axe finds nothing $name', (look) => {
  test.each([...pageSamples, ...emptySamples])('in $view', async ({ view, data }) => {
    const html = (): string => render(view, data)
    const findings = await withPage(await sharedBrowser(), html, look, async (page) => {
      const closed = await axeFindingsIn(page)
      await page.evaluate(
        `document.querySelectorAll('details').forEach((one) => (one.open = true))`,
      )
      return [...closed, ...(await axeFindingsIn(page))]
    })
    expect(findings).toEqual([])
  })
})

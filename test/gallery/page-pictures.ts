/** Pictures of the page in a real Chromium, for the documentation. */
import { chromium } from 'playwright-core'
import { createRenderer } from '../../src/page/output/render.ts'
import { executablePath } from '../support/chromium-path.ts'
import { type PageLook, withPage } from '../support/page-in-chromium.ts'
import type { View } from '../../src/page/output/view-data.ts'
import { pageSamples } from '../support/page-samples.ts'

/** Those of the documentation, whose readers scroll: its pages show the upper part. */
const docsPictures: readonly { view: View; look: PageLook & { name: string }; height: number }[] = [
  { view: 'now', look: { name: 'light', width: 1240, colorScheme: 'light' }, height: 830 },
  { view: 'now', look: { name: 'phone', width: 360, colorScheme: 'dark' }, height: 760 },
  { view: 'told', look: { name: 'light', width: 1240, colorScheme: 'light' }, height: 700 },
  { view: 'event', look: { name: 'light', width: 1240, colorScheme: 'light' }, height: 690 },
  { view: 'not-told', look: { name: 'light', width: 1240, colorScheme: 'light' }, height: 700 },
  { view: 'rules', look: { name: 'dark', width: 1240, colorScheme: 'dark' }, height: 700 },
  { view: 'tenants', look: { name: 'light', width: 1240, colorScheme: 'light' }, height: 460 },
]

const { render } = createRenderer()

/** `page-<view>-<look>.png`, as they are written. */
export async function takePagePictures(): Promise<{ name: string; picture: Buffer }[]> {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    const pictures = []
    for (const { view, look, height } of docsPictures) {
      const sample = pageSamples.find((one) => one.view === view)
      if (!sample) throw new Error(`there is no sample of "${view}"`)
      const html = (): string => render(sample.view, sample.data)
      const clip = { x: 0, y: 0, width: look.width, height }
      const picture = await withPage(browser, html, look, (page) =>
        page.screenshot({ fullPage: true, clip }),
      )
      pictures.push({ name: `page-${view}-${look.name}.png`, picture })
    }
    return pictures
  } finally {
    await browser.close()
  }
}

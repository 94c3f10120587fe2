/** Pictures of the page in a real Chromium: each view in the light, in the dark, on a phone, and empty. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { createRenderer } from '../../src/page/output/render.ts'
import { executablePath } from '../support/chromium-path.ts'
import { type PageLook, withPage } from '../support/page-in-chromium.ts'
import type { View } from '../../src/page/output/view-data.ts'
import { emptySamples, type PageSample, pageSamples } from '../support/page-samples.ts'

const looks: readonly ({ name: string } & PageLook)[] = [
  { name: 'light', width: 1280, colorScheme: 'light' },
  { name: 'dark', width: 1280, colorScheme: 'dark' },
  { name: 'phone', width: 320, colorScheme: 'light' },
]

/** A long page is cut. */
const maxHeight = 1600

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

/** Takes the pictures of the documentation: `page-<view>-<look>.png`. */
export async function takeDocsPictures(folder: string): Promise<string[]> {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    const paths: string[] = []
    for (const { view, look, height } of docsPictures) {
      const sample = pageSamples.find((one) => one.view === view)
      if (!sample) throw new Error(`there is no sample of "${view}"`)
      const path = join(folder, `page-${view}-${look.name}.png`)
      const html = (): string => render(sample.view, sample.data)
      const clip = { x: 0, y: 0, width: look.width, height }
      const picture = await withPage(browser, html, look, (page) =>
        page.screenshot({ fullPage: true, clip }),
      )
      writeFileSync(path, picture)
      paths.push(path)
    }
    return paths
  } finally {
    await browser.close()
  }
}

const { render } = createRenderer()

/** Writes the pictures to the folder, and returns their paths. */
export async function takePagePictures(folder: string): Promise<string[]> {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    const paths: string[] = []
    for (const [prefix, samples] of [
      ['', pageSamples],
      ['empty-', emptySamples],
    ] as const) {
      for (const sample of samples) {
        const start = join(folder, `${prefix}${sample.view}`)
        paths.push(...(await takePictures(browser, sample, start)))
      }
    }
    return paths
  } finally {
    await browser.close()
  }
}

async function takePictures(
  browser: Browser,
  sample: PageSample,
  start: string,
): Promise<string[]> {
  const html = (): string => render(sample.view, sample.data)
  const paths: string[] = []
  for (const look of looks) {
    const path = `${start}-${look.name}.png`
    await withPage(browser, html, look, async (page) => {
      const clip = { x: 0, y: 0, width: look.width, height: maxHeight }
      await page.screenshot({ path, fullPage: true, clip })
    })
    paths.push(path)
  }
  return paths
}

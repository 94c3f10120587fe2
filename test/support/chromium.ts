/** A real browser for what mails look like; pages come from memory, nothing is fetched. */
import { chromium, type Page } from 'playwright-core'
import { isInstalled } from './tools.ts'

const executablePath = '/usr/bin/chromium'

/** False, said loudly, where this machine has no browser; where nothing may be skipped it throws. */
export function hasChromium(): boolean {
  return isInstalled('chromium')
}

export interface Rendering {
  width: number
  /** What the reader's system asks for. */
  colorScheme: 'light' | 'dark'
}

/** Gives `look` the page, and ends the browser whatever it does. Requests of the page fail. */
export async function inChromium<T>(
  html: string,
  { width, colorScheme }: Rendering,
  look: (page: Page) => Promise<T>,
): Promise<T> {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  try {
    const page = await browser.newPage({
      viewport: { width, height: 900 },
      colorScheme,
      javaScriptEnabled: true,
    })
    await page.route('**/*', (route) => route.abort())
    await page.setContent(html)
    return await look(page)
  } finally {
    await browser.close()
  }
}

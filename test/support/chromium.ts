/** A real browser for what mails look like; pages come from memory, nothing is fetched. */
import { chromium, type Browser, type Page } from 'playwright-core'
import { afterAll } from 'vitest'
import { executablePath } from './chromium-path.ts'
import { isInstalled } from './tools.ts'

/** False, said loudly, where this machine has no browser; where nothing may be skipped it throws. */
export function hasChromium(): boolean {
  return isInstalled('chromium')
}

export interface Rendering {
  width: number
  /** What the reader's system asks for. */
  colorScheme: 'light' | 'dark'
}

let browser: Promise<Browser> | undefined

/** Each file that uses the browser calls this: files of one process share this module, and no browser. */
export function endBrowserAfterTests(): void {
  afterAll(async () => {
    await (await browser)?.close()
    browser = undefined
  })
}

/** The browser of all tests of a file. */
export function sharedBrowser(): Promise<Browser> {
  browser ??= chromium.launch({ executablePath, args: ['--no-sandbox'] })
  return browser
}

/** Gives `look` the page, which no other call sees. Requests of the page fail. */
export async function inChromium<T>(
  html: string,
  { width, colorScheme }: Rendering,
  look: (page: Page) => Promise<T>,
): Promise<T> {
  const context = await (
    await sharedBrowser()
  ).newContext({ viewport: { width, height: 900 }, colorScheme })
  try {
    const page = await context.newPage()
    await page.route('**/*', (route) => route.abort())
    await page.setContent(html)
    return await look(page)
  } finally {
    await context.close()
  }
}

/** A view in a real browser, with the stylesheet, the script and the policy that it is served with. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { sampleTime } from './page-samples.ts'

const statics = join(import.meta.dirname, '../../src/page/static')

const contentTypes: Readonly<Record<string, string>> = {
  css: 'text/css',
  js: 'text/javascript',
  svg: 'image/svg+xml',
}

/** Nothing from elsewhere, nothing inline: what a hostile text would need to run. */
const policy =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

export interface PageLook {
  width: number
  colorScheme: 'light' | 'dark'
  forcedColors?: 'active'
  /** Without: times stay UTC, and nothing refreshes. */
  hasScript?: boolean
}

const pageAddress = 'http://tocsin.test/'

/**
 * Calls `html` for every request of the view. The clock begins at the time of the samples. Throws if
 * a script fails, or something runs into the policy.
 */
export async function withPage<T>(
  browser: Browser,
  html: () => string,
  { width, colorScheme, forcedColors, hasScript = true }: PageLook,
  look: (page: Page) => Promise<T>,
): Promise<T> {
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme,
    javaScriptEnabled: hasScript,
    timezoneId: 'Europe/Zurich',
    ...(forcedColors && { forcedColors }),
  })
  try {
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('pageerror', ({ message }) => complaints.push(message))
    page.on('console', (message) => {
      if (message.text().includes('Content Security Policy')) complaints.push(message.text())
    })
    if (hasScript) await page.clock.install({ time: sampleTime })
    await page.route('**/*', async (route) => {
      const { pathname } = new URL(route.request().url())
      const name = /^\/static\/(\w+\.(\w+))$/.exec(pathname)
      if (name === null) {
        const headers = { 'content-security-policy': policy }
        await route.fulfill({ body: html(), contentType: 'text/html; charset=utf-8', headers })
        return
      }
      const body = readFileSync(join(statics, name[1]!), 'utf8')
      await route.fulfill({ body, contentType: contentTypes[name[2]!]! })
    })
    await page.goto(pageAddress)
    const seen = await look(page)
    if (complaints.length > 0) throw new Error(complaints.join('\n'))
    return seen
  } finally {
    await context.close()
  }
}

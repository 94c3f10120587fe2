/** From the service to the reader's browser: a keyboard without script is enough. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readActs } from '../../src/store/history/acts.ts'
import { endBrowserAfterTests, hasChromium, sharedBrowser } from '../support/chromium.ts'
import { password } from '../support/door.ts'
import { askApi, type Json, type PageRig, startPageRig } from '../support/page-rig.ts'

endBrowserAfterTests()

let rig: PageRig
let address: string

beforeAll(async () => {
  rig = await startPageRig()
  address = `http://127.0.0.1:${rig.port}`
  for (const [type, severity] of [
    ['stealer_log', 'high'],
    ['paste', 'medium'],
    ['chat_message', 'medium'],
    ['lookalike', 'medium'],
  ] as const) {
    rig.add('main', 3, { type, severity })
  }
  await rig.settled()
})
afterAll(() => rig?.stop())

async function inBrowser(look: (page: Page) => Promise<void>): Promise<void> {
  const browser = await sharedBrowser()
  const context = await browser.newContext({ javaScriptEnabled: false })
  try {
    const page = await context.newPage()
    await page.goto(`${address}/`)
    await signInByKeyboard(page)
    await look(page)
  } finally {
    await context.close()
  }
}

async function signInByKeyboard(page: Page): Promise<void> {
  await tabTo(page, 'input[name=name]')
  await page.keyboard.type('mara')
  await page.keyboard.press('Tab')
  await page.keyboard.type(password)
  await follow(page, 'h1 .status', 'Enter')
}

/** Presses Tab until the focus is there. */
async function tabTo(page: Page, selector: string): Promise<void> {
  const wanted = page.locator(selector).and(page.locator(':focus'))
  for (let presses = 0; presses < 200; presses += 1) {
    if ((await wanted.count()) > 0) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`the focus does not come to ${selector}`)
}

/** Presses a key, and waits for what the next page has. */
async function follow(page: Page, next: string, key = 'Enter'): Promise<void> {
  await page.keyboard.press(key)
  await page.locator(next).first().waitFor()
}

describe.skipIf(!hasChromium())('without script, by keyboard alone', () => {
  test('one signs in, reads, silences with a preview, sends again, and signs out', async () => {
    const before = (await readActs(rig, 50)).length
    await inBrowser(async (page) => {
      expect(await page.locator('h1').textContent()).toContain('problems with')
      await tabTo(page, 'nav a[href="/told"]')
      await follow(page, 'h1:text-is("Told")')
      await tabTo(page, 'th a[href^="/messages/"]')
      await follow(page, 'h2:text-is("As it was sent")')
      await tabTo(page, 'table.events th a')
      await follow(page, 'h2:text-is("Who was told")')
      await tabTo(page, 'a:text-is("Silence events like this")')
      await follow(page, '.preview')
      expect(await page.locator('.preview').textContent()).toMatch(/would have hidden [1-9]/)
      await tabTo(page, 'details.new input[name=for]')
      await page.keyboard.press('ControlOrMeta+a')
      await page.keyboard.type('2h')
      await tabTo(page, 'input[name=reason]')
      await page.keyboard.type('we know it')
      await tabTo(page, 'button:text-is("See what it would hide")')
      await follow(page, 'input[name=reason][value="we know it"]')
      expect(await page.locator('.preview').textContent()).toMatch(/would have hidden [1-9]/)
      await tabTo(page, 'button:text-is("Silence")')
      await follow(page, 'h1:text-is("Done")')
      expect(await page.locator('main').textContent()).toContain('Silent: soc, oncall')
      await tabTo(page, 'nav a[href="/not-told"]')
      await follow(page, 'h1:text-is("Not told")')
      await tabTo(page, 'tr:has(.state.dead) input[type=checkbox]')
      await page.keyboard.press('Space')
      await tabTo(page, 'button[formaction="/items/resend"]')
      await follow(page, 'h1:text-is("Done")')
      expect(await page.locator('main').textContent()).toContain('1 item queued again')
      await tabTo(page, 'form[action="/sign-out"] button')
      await follow(page, 'h1:text-is("Sign in")')
    })
    const acts = await readActs(rig, 50)
    expect(acts.slice(0, acts.length - before)).toMatchObject([
      { by: 'mara', act: '/items/resend', outcome: 'done' },
      { by: 'mara', act: '/silences', outcome: 'done' },
    ])
    const { json } = await askApi(rig, '/silences')
    const made = json.find(({ reason }: Json) => reason === 'we know it')
    expect(made).toMatchObject({ owner: 'mara', phase: 'active' })
    expect(Date.parse(made.until) - Date.parse(made.starts)).toBe(2 * 3_600_000)
  })
})

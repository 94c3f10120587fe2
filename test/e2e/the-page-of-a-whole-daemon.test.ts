/** From the service to the reader's browser: hostile events are text there, and a keyboard without script is enough. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readActs } from '../../src/store/acts.ts'
import { endBrowserAfterTests, hasChromium, sharedBrowser } from '../support/chromium.ts'
import { password } from '../support/door.ts'
import {
  askApi,
  fieldsOf,
  type Json,
  type PageRig,
  signIn,
  startPageRig,
} from '../support/page-rig.ts'
import { actedUpon, allHostileWords } from '../security/hostile-words.ts'

endBrowserAfterTests()

let rig: PageRig
let address: string

const acting =
  `"'><script>window.ran=1</script><img src=x onerror="window.ran=1"></title></table>` +
  `<!-- {{7*7}} {% raw %} javascript:window.ran=1// <a href="https://evil.example">click</a>`
const hostile = `${acting} ${allHostileWords}`

beforeAll(async () => {
  rig = await startPageRig()
  address = `http://127.0.0.1:${rig.port}`
  const message = `no such thing ${hostile}`
  rig.sandbox.faults.clear()
  rig.sandbox.faults.add({ on: '/hooks/stray', effect: 'status', status: 400, message })
  const given = {
    identifiers: [{ id: 7, name: hostile }],
    tags: [hostile],
    notes: hostile,
    highlights: { title: [hostile], 'credentials.username': [hostile] },
    data: { title: hostile, content: hostile, url: 'javascript:window.ran=1', name: hostile },
  }
  for (const [type, severity] of [
    ['stealer_log', 'high'],
    ['paste', 'medium'],
    ['chat_message', 'medium'],
    ['lookalike', 'medium'],
  ] as const) {
    rig.add('main', 1, {
      type,
      severity,
      uid: `${type}/<img src=x onerror=window.ran=1>`,
      ...given,
    })
    rig.add('main', 2, { type, severity })
  }
  await rig.settled()
})
afterAll(() => rig?.stop())

/** What could run, and where whatever can be followed leads. */
const see = `({
  ran: window.ran ?? null,
  scripts: [...document.scripts].map((one) => one.getAttribute('src')),
  foreign: [...document.querySelectorAll('img, iframe, object, embed, base, style, [style], [srcdoc]')].map((one) => one.outerHTML),
  handlers: [...document.querySelectorAll('*')].flatMap((one) => one.getAttributeNames().filter((name) => name.startsWith('on'))),
  origins: [...new Set([...document.querySelectorAll('[href], [action], [formaction]')].map((one) => new URL(one.getAttribute('formaction') ?? one.getAttribute('action') ?? one.getAttribute('href'), location.href).origin))],
  text: document.querySelector('main').textContent,
})`

interface Seen {
  origins: string[]
  text: string
}

describe.skipIf(!hasChromium())('hostile text', () => {
  test('is text in each view, whoever wrote it', async () => {
    const body = { matchers: ['type="x"'], reason: acting, severity: 'low' }
    expect((await askApi(rig, '/silences', { body })).status).toBe(200)
    const { json: told } = await askApi(rig, '/messages?sink=soc')
    const { json: found } = await askApi(rig, '/events?q=onerror&by=words')
    const events: string[] = found.results.map(({ url }: Json) => url)
    expect(events).toHaveLength(4)
    const views = [
      '/',
      '/told',
      '/not-told',
      '/rules',
      '/tenants',
      told.messages[0].url,
      ...events,
      `/search?q=${encodeURIComponent(acting)}`,
      `/told?recipient=${encodeURIComponent(acting)}`,
      `/rules?matchers=${encodeURIComponent(`type="${acting.replaceAll('"', '')}"`)}&severity=low`,
    ]
    await inBrowser(true, async (page) => {
      const complaints: string[] = []
      page.on('console', (message) => complaints.push(message.text()))
      page.on('dialog', (dialog) => void dialog.dismiss().then(() => complaints.push('a dialog')))
      let shown = 0
      for (const view of views) {
        await page.goto(`${address}${view}`)
        const { text, origins, ...seen } = await page.evaluate<Seen>(see)
        expect({ view, ...seen }).toEqual({
          view,
          ran: null,
          scripts: ['/static/tocsin.js'],
          foreign: [],
          handlers: [],
        })
        const expected = [address, 'https://app.example.com']
        expect(origins.filter((origin) => !expected.includes(origin))).toEqual([])
        expect(text.replaceAll(/[\n\t]/g, '')).not.toMatch(actedUpon)
        if (text.includes('<img src=x onerror=')) shown += 1
      }
      expect(complaints).toEqual([])
      expect(shown).toBeGreaterThan(views.length / 2)
    })
  })

  test('is JSON in each answer of the API, which no browser reads as a page', async () => {
    for (const path of [
      '/messages',
      '/items',
      '/events?q=onerror&by=words',
      '/silences',
      '/status',
    ]) {
      const { headers, text, json } = await askApi(rig, path)
      expect(headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'x-content-type-options': 'nosniff',
        'content-security-policy': expect.stringContaining("default-src 'none'"),
      })
      expect(text).toBe(JSON.stringify(json))
    }
  })
})

async function inBrowser(hasScript: boolean, look: (page: Page) => Promise<void>): Promise<void> {
  const browser = await sharedBrowser()
  const context = await browser.newContext({ javaScriptEnabled: hasScript })
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
    await inBrowser(false, async (page) => {
      expect(await page.locator('h1').textContent()).toContain('problems with')
      await tabTo(page, 'nav a[href="/told"]')
      await follow(page, 'h1:text-is("Told")')
      await tabTo(page, 'th a[href^="/messages/"]')
      await follow(page, 'h2:text-is("As it was sent")')
      await tabTo(page, 'table.events th a:not(:has-text("img"))')
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

  test('a form that is shown again holds what was filled in, whatever it was', async () => {
    const mara = await signIn(rig, 'mara')
    const reason = `${acting} & more`
    const query = new URLSearchParams({ matchers: 'type="x"', reason, severity: 'low', for: '3h' })
    const { body } = await mara.get(`/rules?${query.toString()}`)
    expect(fieldsOf(body, '/silences').some(([name]) => name === 'form_token')).toBe(true)
    expect(body).toContain('name="for" value="3h"')
    expect(body).not.toContain('<img')
  })
})

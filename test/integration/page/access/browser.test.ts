/** What a real browser sends by its own forms, and keeps of the cookie. */
import { chromium } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { executablePath } from '../../../support/chromium-path.ts'
import { hasChromium, endBrowserAfterTests } from '../../../support/chromium.ts'
import { aDoor, password, refusalsOf } from '../../../support/door.ts'
import { redisForTests } from '../../../support/ledger.ts'

endBrowserAfterTests()

const tests = redisForTests()

/** Chromium says from which site a request comes to trustworthy addresses alone, of which loopback is one. */
test.skipIf(!hasChromium()).each(['127.0.0.1', 'tocsin.test'])(
  'a person signs in at %s, acts by the form and is refused the same form again',
  async (host) => {
    const keys = tests.keys()
    const door = await aDoor({ redis: tests.redis, keys, http: { hosts: ['tocsin.test'] } })
    const args = ['--no-sandbox', '--host-resolver-rules=MAP tocsin.test 127.0.0.1']
    const browser = await chromium.launch({ executablePath, args })
    onTestFinished(() => browser.close())
    const page = await browser.newPage()
    await page.goto(`http://${host}:${door.port}/`)
    await page.fill('[name=name]', 'ana')
    await page.fill('[name=password]', password)
    await page.click('button')
    expect(await page.title()).toBe('page')
    await page.click('button')
    expect(await page.textContent('body')).toContain('"by":"ana"')
    await page.reload()
    expect(await page.textContent('body')).toContain('The form was sent already')
    expect(door.acts).toEqual(['/acts/resend'])
    expect(await refusalsOf(door)).toEqual({ replayed: 1 })
  },
)

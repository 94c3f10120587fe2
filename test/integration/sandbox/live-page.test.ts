/** The page that shows what the mock receivers got: drawn by the sandbox, for this machine alone. */
import { request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts'

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await startSandbox()
})
afterAll(() => sandbox.close())

async function postToSlack(text: string): Promise<void> {
  const blocks = [{ type: 'header', text: { type: 'plain_text', text } }]
  const body = JSON.stringify({ text, blocks })
  expect((await fetch(sandbox.slackUrl, { method: 'POST', body })).status).toBe(200)
}

async function page(query = ''): Promise<{ text: string; headers: Headers }> {
  const answer = await fetch(`${sandbox.receivedUrl}${query}`)
  expect(answer.status).toBe(200)
  return { text: await answer.text(), headers: answer.headers }
}

/** As a browser asks that was led to another name for this machine. */
function statusFor(host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(sandbox.receivedUrl, { headers: { host } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    asked.on('error', reject).end()
  })
}

test('says so while nothing has come, then shows the newest message first', async () => {
  expect((await page()).text).toContain('Nothing yet.')
  await postToSlack('first &amp; foremost')
  await postToSlack('&lt;script&gt;second')
  const { text } = await page()
  expect(text).toContain('<h2>Slack: 2</h2>')
  expect(text).toContain('<p class="header">first &amp; foremost</p>')
  expect(text.indexOf('second')).toBeLessThan(text.indexOf('first'))
  expect(text).toContain('&lt;script&gt;second')
  expect(text).not.toContain('<script')
})

test('is loaded anew by itself, until it is asked to stand still', async () => {
  const refresh = '<meta http-equiv="refresh" content="2" />'
  expect((await page()).text).toContain(refresh)
  expect((await page('?still')).text).not.toContain('http-equiv="refresh"')
})

test('may run no script and load nothing, and is kept by nobody', async () => {
  const { headers } = await page()
  const policy = headers.get('content-security-policy')
  expect(policy).toMatch(/^default-src 'none'; style-src 'unsafe-inline';/)
  expect(policy).not.toContain('script')
  expect(policy).toContain("frame-ancestors 'none'")
  expect(headers.get('cache-control')).toBe('no-store')
})

test('is refused under the name of another host', async () => {
  expect(await statusFor('evil.example')).toBe(403)
  expect(await statusFor(new URL(sandbox.url).host)).toBe(200)
})

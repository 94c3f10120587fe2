/** What Tocsin tells of itself is for whoever sees the whole installation. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { askApi, type PageRig, startPageRig } from '../../support/page-rig.ts'
import { until } from '../../support/until.ts'

let rig: PageRig

beforeAll(async () => {
  rig = await startPageRig({
    extra: { more: ['self_alerts: {sink: soc, after: 1s}', 'canary: {sinks: [siem], every: 1m}'] },
  })
  rig.add('other', 1, { type: 'paste', severity: 'medium' }) // its sink refuses it
  await rig.settled()
  await until('the dead letter is told', async () => {
    const { json } = await askApi(rig, '/messages')
    return json.messages.some(({ title }: { title: string }) => title.includes('stray'))
  })
})
afterAll(() => rig?.stop())

test('who sees the first account alone finds nothing of it, in no list and at no address', async () => {
  const { json } = await askApi(rig, '/messages')
  const own = json.messages.filter(({ title }: { title: string }) => title?.startsWith('Tocsin'))
  expect(own.length).toBeGreaterThan(0)
  const addresses = own.map(({ url }: { url: string }) => url)
  const spy = { as: 'spy' } as const
  for (const path of ['/messages', '/items', '/events?q=ocsi', '/events?q=anar', '/status']) {
    const { text } = await askApi(rig, path, spy)
    expect([path, text]).toEqual([path, expect.not.stringMatching(/Tocsin|stray|canary/i)])
  }
  for (const address of addresses) {
    expect((await askApi(rig, address)).status).toBe(200)
    expect((await askApi(rig, address, spy)).status).toBe(404)
  }
})

/** Answers of the service and of sinks that are too much, too deep, or no text: nothing falls over them. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { mapTexts } from '../../src/cli/api/masks.ts'
import { parseItem } from '../../src/feeds/types/events.ts'
import { canonicalJson } from '../../src/feeds/types/field-reader.ts'
import { withholdIn } from '../../src/masking/masking.ts'
import { wireFullEvent } from '../../src/upstream/resources/events.ts'
import { wireSearchPage, type WireSearchPage } from '../../src/upstream/resources/page.ts'
import { readAnswer } from '../../src/upstream/access/session.ts'
import { createConnections, createTransport } from '../../src/upstream/transport.ts'
import { aDelivery } from '../support/deliveries.ts'
import { anAccount } from '../support/replica.ts'
import { aSlackSink } from './slack-sink.ts'

async function serving(answer: (response: ServerResponse) => void): Promise<string> {
  const asked: unknown[] = []
  const server = createServer((request, response) => {
    asked.push(request.headers)
    request.resume().on('end', () => answer(response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('an answer of Slack', () => {
  async function send(answer: (response: ServerResponse) => void): Promise<unknown> {
    const sink = aSlackSink(await serving(answer))
    const signal = AbortSignal.timeout(30_000)
    return sink.send(aDelivery(sink), { signal }).catch((error: unknown) => error)
  }

  const packers: [string, (text: Buffer) => Uint8Array][] = [
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ]

  test.each(packers)(
    'that is packed as %s although nobody asked for it is not unpacked',
    async (encoding, pack) => {
      const denial = '{"ok":false,"error":"no_service"}' // unpacked, it would be one
      const packed = pack(Buffer.from(`${denial}${' '.repeat(5_000_000)}`))
      const told = await send((response) => {
        response.writeHead(200, { 'content-encoding': encoding }).end(packed)
      })
      expect(told).toEqual({ answer: '200' })
    },
  )

  test('is read no further than the limit', async () => {
    let written = 0
    const told = await send((response) => {
      response.writeHead(200).write('ok')
      const more = (): void => {
        written += 1_000
        if (!response.destroyed) response.write(' '.repeat(1_000), more)
      }
      more()
    })
    expect(told).toEqual({ answer: '200 ok' })
    expect(written).toBeLessThan(100_000_000)
  })
})

function answerOf(body: string): Parameters<typeof readAnswer>[0] {
  return { status: 200, headers: {}, body, sentAtMs: 0 }
}

const good = '{"metadata":{"uid":"paste/x/good","severity":"high"}}'

describe('an answer of the service', () => {
  test.each([
    ['lists', '['.repeat(100_000), ']'.repeat(100_000)],
    ['objects', '{"a":'.repeat(100_000), '}'.repeat(100_000)],
    ['objects under odd names', '{"__proto__":'.repeat(100_000), '}'.repeat(100_000)],
  ])('that holds 100,000 %s in each other is cut where nobody looks', (_kind, open, close) => {
    const deep = `${open}1${close}`
    const raw = `{"metadata":{"uid":"paste/x/deep"},"more":${deep}}`
    const page = readAnswer(answerOf(`{"items":[${raw},${deep},${good}]}`), wireSearchPage)
    expect(page.items.at(-1)).toEqual(JSON.parse(good))
    expect(page.items.map((item) => parseItem(item).ok)).toEqual([true, false, true])
    expect(JSON.stringify(page)).toContain('…')
    expect(canonicalJson(page.items[1])).toContain('…')
    const full = readAnswer(answerOf(`{"data":{"deep":${deep}}}`), wireFullEvent)
    for (const walked of [mapTexts(full, (text) => text), withholdIn(full.data ?? {})]) {
      expect(JSON.stringify(walked)).toContain('…')
    }
    expect(({} as Record<string, unknown>)['a']).toBeUndefined()
  })

  test('that is packed although nobody asked for it is not unpacked', async () => {
    const url = await serving((response) => {
      const packed = brotliCompressSync(
        Buffer.from(`{"items":[${good}],"x":"${' '.repeat(1_000_000)}"}`),
      )
      response.writeHead(200, { 'content-encoding': 'br' }).end(packed)
    })
    await expect(pageFrom(url)).rejects.toMatchObject({ reason: 'contract' })
  })

  async function pageFrom(baseUrl: string): Promise<WireSearchPage> {
    const connections = createConnections()
    onTestFinished(() => connections.close())
    const transport = createTransport({ account: anAccount({ baseUrl }), connections })
    const authorization = 'Bearer good'
    const asked = { method: 'POST', path: '/x', authorization, body: {} } as const
    return readAnswer(await transport.request(asked), wireSearchPage)
  }
})

/** No sink is pointed at an address that is not public, however the address is written. */
import type { LookupFunction } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { nonPublicClass, refuseLiteral } from '../../src/sinks/address-guard.ts'
import { SinkError, type Sink } from '../../src/sinks/sink.ts'
import { aTcpServer, aWebhookSink, anHttpServer } from '../integration/sinks/webhook/harness.ts'
import { aDelivery } from '../support/deliveries.ts'
import { aSlackSink } from './slack-sink.ts'

const privateRanges = [
  [10, 0, 0, 0, 8],
  [127, 0, 0, 0, 8],
  [169, 254, 0, 0, 16],
  [172, 16, 0, 0, 12],
  [192, 168, 0, 0, 16],
  [100, 64, 0, 0, 10],
  [0, 0, 0, 0, 8],
] as const

/** An address of one of them, as one number. */
const privateNumber = fc
  .tuple(fc.constantFrom(...privateRanges), fc.nat(2 ** 24 - 1))
  .map(([[a, b, c, d, bits], below]) => {
    const network = a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d
    return network + (below % 2 ** (32 - bits))
  })

const digits = fc.constantFrom(
  (part: number) => String(part),
  (part: number) => `0x${part.toString(16)}`,
  (part: number) => `0X${part.toString(16).toUpperCase().padStart(9, '0')}`,
  (part: number) => `0${part.toString(8)}`,
  (part: number) => `000${part.toString(8)}`,
)
const dot = fc.constantFrom('.', '。', '．', '｡', '%2e', '%E3%80%82')
const glyphs = fc.constantFrom(
  (text: string) => text,
  (text: string) => text.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
  (text: string) =>
    text.replaceAll(/\d/g, (digit) => String.fromCodePoint(0x1d7ce + Number(digit))),
  (text: string) => text.replaceAll(/\d/g, (digit) => `%3${digit}`),
)

/** One to four numbers, the last of which stands for all the bytes that are left. */
function parted(address: number, parts: number): number[] {
  const bytes = [24, 16, 8]
    .slice(0, parts - 1)
    .map((shift) => Math.floor(address / 2 ** shift) % 256)
  return [...bytes, address % 2 ** (8 * (5 - parts))]
}

const spelling = fc
  .record({
    address: privateNumber,
    parts: fc.integer({ min: 1, max: 4 }),
    digits: fc.array(digits, { minLength: 4, maxLength: 4 }),
    dots: fc.array(dot, { minLength: 3, maxLength: 3 }),
    glyphs,
    end: fc.constantFrom('', '.', '。'),
    before: fc.constantFrom('', 'user@', 'user:word@', '8.8.8.8@', '8.8.8.8%2f@'),
  })
  .map((given) => {
    const written = parted(given.address, given.parts)
      .map((part, at) => `${at === 0 ? '' : given.dots[at - 1]}${given.digits[at]!(part)}`)
      .join('')
    return `https://${given.before}${given.glyphs(written)}${given.end}/hooks`
  })

test('no spelling of a private IPv4 address passes for a public one or for a name', () => {
  fc.assert(
    fc.property(spelling, (text) => {
      const url = URL.parse(text)
      if (url === null) return // no URL goes nowhere
      expect(() => refuseLiteral(url.hostname)).toThrow(SinkError)
    }),
    { numRuns: 2_000 },
  )
})

test('no IPv6 address that carries one passes either', () => {
  const hex = (word: number): string => word.toString(16)
  fc.assert(
    fc.property(privateNumber, (address) => {
      const words = `${hex(Math.floor(address / 65_536))}:${hex(address % 65_536)}`
      const forms = [`::ffff:${words}`, `::${words}`, `64:ff9b::${words}`, `2002:${words}::`]
      for (const form of [...forms, `0:0:0:0:0:FFFF:${words.toUpperCase()}`, `::ffff:0:${words}`]) {
        const { hostname } = new URL(`https://[${form}]/`)
        expect(() => refuseLiteral(hostname)).toThrow(SinkError)
        expect(nonPublicClass(form)).toBeDefined()
      }
    }),
  )
})

/** The resolver of an attacker: whatever the name, this machine. */
const resolve: LookupFunction = (_hostname, options, callback) => {
  if (!options.all) callback(null, '127.0.0.1', 4)
  else
    callback(
      null,
      ['127.0.0.1', '::1'].map((address, at) => ({ address, family: at ? 6 : 4 })),
    )
}

test('a name that leads to a private address at the connect is refused, and nothing connects', async () => {
  const server = await aTcpServer()
  const url = `https://siem.example.com:${server.port}/`
  const sink = aWebhookSink(url, { allowPrivate: false }, { resolve })
  expect(await failureOf(sink)).toMatchObject({ reason: 'forbidden_address' })
  expect(server.connections()).toBe(0)
})

async function failureOf(sink: Sink): Promise<SinkError> {
  const error = await sink.send(aDelivery(sink), { signal: AbortSignal.timeout(30_000) }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof SinkError) return error
  throw new Error('the sink did not fail as sinks do', { cause: error })
}

const kinds: [string, (url: string, allowPrivate: boolean) => Sink][] = [
  ['slack', aSlackSink],
  ['webhook', (url, allowPrivate) => aWebhookSink(url, { allowPrivate })],
]

describe.each(kinds)('a %s sink', (_kind, aSink) => {
  // every other spelling is refused by the properties above
  test.each(['localhost', '127.1', '127。0。0。1', '[::1]', '[::ffff:7f00:1]'])(
    'sends nothing to %s',
    async (host) => {
      const server = await aTcpServer()
      const error = await failureOf(aSink(`https://${host}:${server.port}/hooks/tok-1`, false))
      expect(error.reason).toBe('forbidden_address')
      expect(error.message).not.toContain('tok-1')
      expect(server.connections()).toBe(0)
    },
  )

  test.each([301, 302, 303, 307, 308])(
    'follows no %i, neither to a cloud’s metadata nor home',
    async (status) => {
      const inner = await anHttpServer()
      for (const location of [
        'http://169.254.169.254/latest/meta-data',
        `${inner.url}/x`,
        '//0/x',
      ]) {
        const server = await anHttpServer()
        server.script({ status, headers: { location } })
        const error = await failureOf(aSink(`${server.url}/hooks/tok-1`, true))
        expect(error).toMatchObject({ reason: 'redirected' })
        expect(error.message).not.toMatch(/tok-1|169\.254|latest/)
        expect(server.requests).toHaveLength(1)
      }
      expect(inner.requests).toEqual([])
    },
  )

  test.each([
    'https://user:hush-hush@siem.example.com/x',
    'ftp://siem.example.com/x',
    'file:///etc/passwd',
  ])('does not go to %s', async (url) => {
    const error = await failureOf(aSink(url, true))
    expect(error.reason).toBe('misconfigured')
    expect(error.message).not.toMatch(/hush|passwd/)
  })
})

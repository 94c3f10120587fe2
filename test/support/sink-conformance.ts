/**
 * The promises that every sink keeps, as one suite: what an answer means, one id for all attempts, no secret told, hostile text inert, no connection left.
 * To add a driver, write `conformance.test.ts` in the sink's folder: `create` starts a real server and a sink (fresh for every test), `answers` is its table.
 */
import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { systemClock, type Clock } from '../../src/lib/clock.ts'
import { createLogger, type Logger } from '../../src/lib/logger.ts'
import {
  isAnswerLost,
  type SendOptions,
  type Sink,
  SinkError,
  type SinkReason,
} from '../../src/sinks/sink.ts'
import type { MessageTemplates } from '../../src/sinks/templates/template-config.ts'
import type { TemplateFailure } from '../../src/sinks/templates/template-config.ts'
import { aDelivery, aMember } from './deliveries.ts'
import { aThreatEvent } from './events.ts'

/** A message as it arrived at the receiver. */
export interface Received {
  /** What a receiver tells repeats by: `webhook-id`, `Message-ID`, the id in the text. */
  id: string
  /** The message as a receiver stores it, raw: the body, the whole mail. */
  text: string
  /** What its encoding holds; left out: the text itself. */
  decoded?: string
  /** Whether the message itself says that it may be a repeat. */
  saysRepeat: boolean
  /** Whether the message itself says that it is a test. */
  saysTest: boolean
}

/** The receiver, under the suite's orders. A fresh driver accepts. */
export interface SinkDriver {
  readonly sink: Sink
  /** Every secret in the sink's configuration, each a string that could not stand anywhere by chance. */
  readonly secrets: readonly string[]
  accept(): void | Promise<void>
  /** Takes a message whole and cuts the connection instead of answering. */
  answerLost(): void | Promise<void>
  /** Takes a message whole and never answers. */
  hang(): void | Promise<void>
  /** Nobody listens on the port any more; `accept` listens again. */
  refuse(): void | Promise<void>
  /** Every message taken whole, answered or not, oldest first. */
  received(): readonly Received[]
  /** Connections that the receiver holds open. */
  openConnections(): number
  /** Fails where one of `hostileTexts` is more than inert text in this sink's dialect. */
  expectInert(message: Received): void
  stop(): Promise<void>
}

/** One row of the sink's classification table: what the receiver answers, and the word for it. */
export interface AnswerRow<D extends SinkDriver> {
  title: string
  arrange: (driver: D) => void | Promise<void>
  reason: SinkReason
  /** What the receiver asked for; left out: the error carries none. */
  retryAfterMs?: number
}

export interface SinkEnvironment {
  /** At trace level; everything that goes through it is searched for secrets. */
  logger: Logger
  clock: Clock
  /** Of a sink for people. */
  templates?: MessageTemplates | undefined
  onTemplateFailure: (failure: TemplateFailure) => void
}

export interface SinkConformance<D extends SinkDriver> {
  name: string
  create(environment: SinkEnvironment): Promise<D>
  answers: readonly AnswerRow<D>[]
}

/** Text as a leak site would write it for us: markup, mentions, links, headers, formulas, overrides. */
export const hostileTexts = [
  '<script>alert(1)</script>',
  '</pre></td><img src=https://evil.example/pixel.png onerror=alert(1)>',
  '<!channel> <!here> <@U012AB3CD> <#C012AB3CD> <!subteam^S012AB3CD>',
  '<https://evil.example/login|https://bank.example/login>',
  '```\n*bold* _it_ ~no~ `code` :skull:',
  'x\r\nBcc: victim@example.net\r\nX-Forged: yes',
  '\r\n.\r\nMAIL FROM:<evil@example.net>\r\n',
  '=HYPERLINK("https://evil.example","open")',
  '{{ 7 | times: 7 }} ${7*7} %s %0d%0aSet-Cookie:a=b',
  'http:\\\\evil.example //evil.example/x www.evil.example mailto:joe@evil.example tel:117 javascript:alert(1)',
  '[a](https://evil.example) ![a](//evil.example/b) "}], "url": "https://evil.example", "y": [{"a": "\\',
  '=?UTF-8?Q?=0D=0ABcc:_x@evil.example?= \u{1F525} \uD800',
  '\u202Egpj.exe\u2066 \u200Bzero\u0000width\u0007',
] as const

export interface Bench<D extends SinkDriver> {
  driver: D
  sink: Sink
  /** Sends, and gives the SinkError that it must end with. */
  failure: (options?: FailureOptions) => Promise<SinkError>
  logged(): string
  /** Of templates, as the sink told them. */
  failures: TemplateFailure[]
}

type FailureOptions = Partial<SendOptions>

export function describeSinkConformance<D extends SinkDriver>(suite: SinkConformance<D>): void {
  describe(`${suite.name} keeps the promises of every sink`, () => {
    describeAcceptance(suite)
    describePage(suite)
    describeFailures(suite)
    describeDiscretion(suite)
  })
}

function describeAcceptance<D extends SinkDriver>(suite: SinkConformance<D>): void {
  test('an accepted message gives a short receipt and arrives once', async () => {
    const { driver, sink } = await arrange(suite)
    const { answer } = await sink.send(aDelivery(sink), { signal: patience() })
    expect(answer.length).toBeLessThanOrEqual(200)
    expect(driver.received()).toHaveLength(1)
    expect(driver.received()[0]).toMatchObject({ saysRepeat: false, saysTest: false })
  })

  test('the same delivery sent twice carries the same id, another delivery another', async () => {
    const { driver, sink } = await arrange(suite)
    for (const { id, attempt } of [
      { id: 'aaaa', attempt: 1 },
      { id: 'aaaa', attempt: 2 },
      { id: 'bbbb', attempt: 1 },
    ]) {
      await sink.send(aDelivery(sink, { id, attempt }), { signal: patience() })
    }
    const [first, again, other] = driver.received().map((message) => message.id)
    expect(first).toContain('aaaa')
    expect(again).toBe(first)
    expect(other).not.toBe(first)
  })

  test('a message that may be a repeat says so', async () => {
    const { driver, sink } = await arrange(suite)
    const delivery = aDelivery(sink, { attempt: 2, mayBeRepeat: true })
    await sink.send(delivery, { signal: patience() })
    expect(driver.received()[0]).toMatchObject({ saysRepeat: true, saysTest: false })
  })

  test('a test message says so', async () => {
    const { driver, sink } = await arrange(suite)
    await sink.send(aDelivery(sink, { isTest: true }), { signal: patience() })
    expect(driver.received()[0]).toMatchObject({ saysRepeat: false, saysTest: true })
  })

  test('as many sends at once as the sink allows arrive each under its own id', async () => {
    const { driver, sink } = await arrange(suite)
    const ids = Array.from({ length: sink.concurrency }, (_, index) => `many${index}x`)
    await Promise.all(ids.map((id) => sink.send(aDelivery(sink, { id }), { signal: patience() })))
    const arrived = driver.received().map((message) => message.id)
    expect(new Set(arrived).size).toBe(ids.length)
    for (const id of ids) expect(arrived.filter((seen) => seen.includes(id))).toHaveLength(1)
  })

  test('it is reached without a message, and the connection is not kept', async () => {
    const { driver, sink } = await arrange(suite)
    const { answer } = await sink.reach(patience())
    expect(answer.length).toBeLessThanOrEqual(200)
    expect(driver.received()).toEqual([])
    await expect.poll(() => driver.openConnections()).toBe(0)
  })

  test('a sink that takes batches can measure a member', async () => {
    const { sink } = await arrange(suite)
    if (sink.batch === undefined) return
    expect(sink.measure?.(aMember())).toBeGreaterThan(0)
  })

  test('closing leaves no connection behind', async () => {
    const { driver, sink } = await arrange(suite)
    await sink.send(aDelivery(sink), { signal: patience() })
    await sink.close()
    await expect.poll(() => driver.openConnections()).toBe(0)
  })
}

/** Of the event, as `public_url` gives it. */
const anEventPage = 'https://tocsin.example.net/events/main/5f2c9a1b7d3e4f6a8b0c1d2e'

function describePage<D extends SinkDriver>(suite: SinkConformance<D>): void {
  test('the address of an event’s page arrives whole, however much else is cut', async () => {
    const { driver, sink } = await arrange(suite)
    for (const text of ['short', '&'.repeat(30_000), '😀'.repeat(30_000)]) {
      const members = [{ ...hostileMember(text), pageUrl: anEventPage }]
      await sink.send(aDelivery(sink, { members }), { signal: patience() })
      const { text: raw, decoded = raw } = driver.received().at(-1)!
      expect(decoded).toContain(anEventPage)
    }
  })

  test('without a page no message leads to one', async () => {
    const { driver, sink } = await arrange(suite)
    await sink.send(aDelivery(sink), { signal: patience() })
    expect(driver.received()[0]!.text).not.toMatch(/in Tocsin|page_url/)
  })
}

function describeFailures<D extends SinkDriver>(suite: SinkConformance<D>): void {
  test.each(suite.answers)('$title is $reason', async ({ arrange: set, reason, retryAfterMs }) => {
    const bench = await arrange(suite)
    await set(bench.driver)
    expect(await bench.failure()).toMatchObject({ reason, retryAfterMs })
  })

  test('a cut after the message was taken is an answer lost', async () => {
    const { driver, failure } = await arrange(suite)
    await driver.answerLost()
    const error = await failure()
    expect(error.reason).toBe('connection_lost')
    expect(driver.received()).toHaveLength(1)
  })

  test('no answer is a time-out as soon as the signal says so', async () => {
    const { driver, failure } = await arrange(suite)
    await driver.hang()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }) // no timer ends it
    onTestFinished(() => void vi.useRealTimers())
    const stop = new AbortController()
    const failed = failure({ signal: stop.signal })
    await expect.poll(() => driver.received().length).toBe(1)
    stop.abort()
    expect((await failed).reason).toBe('timeout')
  })

  test('a refused connection is unavailable, and no answer is lost', async () => {
    const { driver, failure } = await arrange(suite)
    await driver.refuse()
    const error = await failure()
    expect(error.reason).toBe('unavailable')
    expect(driver.received()).toEqual([])
  })

  test('where nobody listens or the time is up it is not reached, without a secret', async () => {
    const { driver, sink } = await arrange(suite)
    const told = [await sink.reach(AbortSignal.abort()).catch((error: unknown) => error)]
    await driver.refuse()
    told.push(await sink.reach(patience()).catch((error: unknown) => error))
    const message = expect.stringMatching(/ (was not reached|cannot be used now)/)
    for (const error of told) expect(error).toMatchObject({ reason: 'unavailable', message })
    for (const secret of driver.secrets) expect(told.map(everythingOf).join()).not.toContain(secret)
  })

  test('a signal that aborted before the send sends nothing and loses no answer', async () => {
    const { driver, failure } = await arrange(suite)
    const error = await failure({ signal: AbortSignal.abort() })
    expect(isAnswerLost(error.reason)).toBe(false)
    await setImmediate()
    expect(driver.received()).toEqual([])
  })

  test('asked on a live connection, a no writes nothing and loses no answer', async () => {
    const { driver, sink, failure } = await arrange(suite)
    const connections: number[] = []
    const mayBegin = (): boolean => {
      connections.push(driver.openConnections())
      return false
    }
    expect((await failure({ mayBegin })).reason).toBe('unavailable')
    expect(connections).toEqual([1])
    await expect.poll(() => driver.openConnections()).toBe(0) // nobody waits for the rest
    const options = { signal: patience(), mayBegin: () => true }
    await sink.send(aDelivery(sink, { id: 'afterwards' }), options)
    expect(driver.received().map(({ id }) => id)).toEqual([expect.stringContaining('afterwards')])
  })

  test('after a cut, a hang and a refusal the next message is accepted', async () => {
    const { driver, sink, failure } = await arrange(suite)
    await driver.answerLost()
    await failure()
    await driver.hang()
    await failure({ signal: AbortSignal.timeout(300) })
    await driver.refuse()
    await failure()
    await driver.accept()
    const delivery = aDelivery(sink, { id: 'afterwards' })
    await sink.send(delivery, { signal: patience() })
    expect(driver.received().at(-1)?.id).toContain('afterwards')
  })

  test('closing after a hang leaves no connection behind', async () => {
    const { driver, sink, failure } = await arrange(suite)
    await driver.hang()
    await failure({ signal: AbortSignal.timeout(300) })
    await sink.close()
    await expect.poll(() => driver.openConnections()).toBe(0)
  })
}

function describeDiscretion<D extends SinkDriver>(suite: SinkConformance<D>): void {
  test('no secret stands in an error, its causes, its stack, a log line or the sink itself', async () => {
    const bench = await arrange(suite)
    const { driver, sink, failure } = bench
    expect(driver.secrets.length).toBeGreaterThan(0)
    const told: unknown[] = [sink, await sink.send(aDelivery(sink), { signal: patience() })]
    await driver.answerLost()
    told.push(await failure())
    await driver.hang()
    told.push(await failure({ signal: AbortSignal.timeout(300) }))
    for (const row of suite.answers) {
      await driver.accept()
      await row.arrange(driver)
      told.push(await failure())
    }
    await driver.refuse()
    told.push(await failure())
    const everything = [...told.map(everythingOf), bench.logged()].join('\n')
    for (const secret of driver.secrets) expect(everything).not.toContain(secret)
  })

  test('hostile text arrives as inert text', async () => {
    const { driver, sink } = await arrange(suite)
    for (const text of hostileTexts) {
      await sink.send(aDelivery(sink, { id: 'hostile', members: [hostileMember(text)] }), {
        signal: patience(),
      })
    }
    expect(driver.received()).toHaveLength(hostileTexts.length)
    for (const message of driver.received()) driver.expectInert(message)
  })
}

/** The text at every place where the feed, and not the operator, decides what stands. */
export function hostileMember(text: string): ReturnType<typeof aMember> {
  return aMember({
    event: aThreatEvent({
      type: text,
      source: text,
      severity: text,
      originalSeverity: text,
      url: `https://app.example.com/${text}`,
      tags: [text],
      notes: text,
      identifiers: [{ id: 1, name: text }],
      highlights: { [text]: [text], content: [text, text] },
    }),
    detail: { title: text, content: text, [text]: { nested: [text] } },
    otherRecipients: [text, text.repeat(2)],
  })
}

export async function arrange<D extends SinkDriver>(
  suite: SinkConformance<D>,
  { templates }: Pick<SinkEnvironment, 'templates'> = {},
): Promise<Bench<D>> {
  const failures: TemplateFailure[] = []
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const logger = createLogger({ level: 'trace', destination })
  const driver = await suite.create({
    logger,
    clock: systemClock,
    templates,
    onTemplateFailure: (told) => failures.push(told),
  })
  const { sink } = driver
  onTestFinished(async () => {
    await sink.close()
    await driver.stop()
  })

  async function failure(options: FailureOptions = {}): Promise<SinkError> {
    const error = await sink.send(aDelivery(sink), { signal: patience(), ...options }).then(
      ({ answer }) => new Error(`the sink accepted: ${answer}`),
      (thrown: unknown) => thrown,
    )
    logger.error({ err: error }, 'send failed')
    if (!(error instanceof SinkError)) throw error
    return error
  }

  return { driver, sink, failure, failures, logged: () => lines.join('') }
}

/** Far longer than a loopback answer takes, far shorter than a test may. */
export function patience(): AbortSignal {
  return AbortSignal.timeout(45_000)
}

/** All that a careless logger or a crash dump could print of a value, causes and stacks included. */
function everythingOf(value: unknown): string {
  const seen = [inspect(value, { depth: 12, showHidden: true }), JSON.stringify(value)]
  for (let at = value; at instanceof Error; at = at.cause) {
    seen.push(at.message, at.stack ?? '', JSON.stringify(Object.entries(at)))
  }
  return seen.join('\n')
}

/**
 * The promises that sinks of every type keep: what an answer means, one id for all attempts, no secret told, hostile text inert, no connection left.
 * A type has a driver in `drivers/`, and `sink-types.ts` says whether people read it.
 */
import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import {
  type Delivery,
  type DeliveryMember,
  isAnswerLost,
  type SendOptions,
  type Sink,
  SinkError,
} from '../../../src/sinks/sink.ts'
import { type SinkConfig, sinkConfig, sinkTypeOf } from '../../../src/sinks/sink-types.ts'
import type {
  MessageTemplates,
  TemplateFailure,
} from '../../../src/sinks/templates/template-config.ts'
import { aDelivery, aMember, hostileMember, hostileTexts } from '../../support/deliveries.ts'
import { aThreatEvent } from '../../support/events.ts'
import {
  aBusyDigest,
  aSummary,
  digestFacts,
  manyMembers,
  summarised,
} from '../../support/summaries.ts'
import { email } from './drivers/email.ts'
import { pagerduty } from './drivers/pagerduty.ts'
import type { Received, Receiver, SinkDriver } from './drivers/sink-driver.ts'
import { slack } from './drivers/slack.ts'
import { teams } from './drivers/teams.ts'
import { webhook } from './drivers/webhook.ts'

type Type = SinkConfig['type']

const drivers: Record<Type, SinkDriver> = { slack, teams, email, pagerduty, webhook }
const types = Object.keys(drivers) as Type[]
const forPeople = types.filter((type) => sinkTypeOf({ type }).audience === 'people')

test('every type of sinks has a driver', () => {
  expect(new Set<unknown>(types)).toEqual(sinkConfig._zod.propValues['type'])
})

describe.each(types)('a sink of type %s', (type) => {
  test('an accepted message gives a short receipt and arrives once', async () => {
    const { receiver, sink } = await arrange(type)
    const { answer } = await sink.send(aDelivery(sink), { signal: patience() })
    expect(answer.length).toBeLessThanOrEqual(200)
    expect(receiver.received()).toHaveLength(1)
    expect(receiver.received()[0]).toMatchObject({ saysRepeat: false, saysTest: false })
  })

  test('the same delivery sent twice carries the same id, another delivery another', async () => {
    const { send } = await arrange(type)
    const first = await send({ id: 'aaaa' })
    const again = await send({ id: 'aaaa', attempt: 2 })
    const other = await send({ id: 'bbbb' })
    expect(first.id).toContain('aaaa')
    expect(again.id).toBe(first.id)
    expect(other.id).not.toBe(first.id)
  })

  test('a message that may be a repeat says so', async () => {
    const { send } = await arrange(type)
    const message = await send({ attempt: 2, mayBeRepeat: true })
    expect(message).toMatchObject({ saysRepeat: true, saysTest: false })
  })

  test('a test message says so', async () => {
    const { send } = await arrange(type)
    expect(await send({ isTest: true })).toMatchObject({ saysRepeat: false, saysTest: true })
  })

  test('as many sends at once as the sink allows arrive each under its own id', async () => {
    const { receiver, sink, send } = await arrange(type)
    const ids = Array.from({ length: sink.concurrency }, (_, index) => `many${index}x`)
    await Promise.all(ids.map((id) => send({ id })))
    const arrived = receiver.received().map((message) => message.id)
    expect(new Set(arrived).size).toBe(ids.length)
    for (const id of ids) expect(arrived.filter((seen) => seen.includes(id))).toHaveLength(1)
  })

  test('it is reached without a message, and the connection is not kept', async () => {
    const { receiver, sink } = await arrange(type)
    const { answer } = await sink.reach(patience())
    expect(answer.length).toBeLessThanOrEqual(200)
    expect(receiver.received()).toEqual([])
    await expect.poll(() => receiver.openConnections()).toBe(0)
  })

  test('a sink measures a member where it takes batches', async () => {
    const { sink } = await arrange(type)
    const bytes = sink.measure?.(aMember())
    expect(bytes !== undefined).toBe(sink.batch !== undefined)
    expect(bytes ?? 1).toBeGreaterThan(0)
  })

  test('closing leaves no connection behind', async () => {
    const { receiver, sink, send } = await arrange(type)
    await send()
    await sink.close()
    await expect.poll(() => receiver.openConnections()).toBe(0)
  })

  test('the address of an event’s page arrives whole, however much else is cut', async () => {
    const { send } = await arrange(type)
    const pageUrl = 'https://tocsin.example.net/events/main/5f2c9a1b7d3e4f6a8b0c1d2e'
    for (const text of ['short', '&'.repeat(30_000), '😀'.repeat(30_000)]) {
      const members = [{ ...hostileMember(text), pageUrl }]
      const { text: raw, decoded = raw } = await send({ members })
      expect(decoded).toContain(pageUrl)
    }
  })

  test('without a page no message leads to one', async () => {
    const { send } = await arrange(type)
    expect((await send()).text).not.toMatch(/in Tocsin|page_url/)
  })

  test.each(drivers[type].answers)(
    '$title is $reason',
    async ({ answer, reason, retryAfterMs }) => {
      const { receiver, failure } = await arrange(type)
      receiver.answer(answer)
      expect(await failure()).toMatchObject({ reason, retryAfterMs })
    },
  )

  test('a cut after the message was taken is an answer lost', async () => {
    const { receiver, failure } = await arrange(type)
    receiver.answerLost()
    const error = await failure()
    expect(error.reason).toBe('connection_lost')
    expect(receiver.received()).toHaveLength(1)
  })

  test('no answer is a time-out as soon as the signal says so', async () => {
    const { timeOut } = await arrange(type)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }) // no timer ends it
    onTestFinished(() => void vi.useRealTimers())
    expect((await timeOut()).reason).toBe('timeout')
  })

  test('a refused connection is unavailable, and no answer is lost', async () => {
    const { receiver, failure } = await arrange(type)
    await receiver.refuse()
    const error = await failure()
    expect(error.reason).toBe('unavailable')
    expect(receiver.received()).toEqual([])
  })

  test('where nobody listens or the time is up it is not reached, without a secret', async () => {
    const { receiver, sink } = await arrange(type)
    const told = [await sink.reach(AbortSignal.abort()).catch((error: unknown) => error)]
    await receiver.refuse()
    told.push(await sink.reach(patience()).catch((error: unknown) => error))
    const message = expect.stringMatching(/ (was not reached|cannot be used now)/)
    for (const error of told) expect(error).toMatchObject({ reason: 'unavailable', message })
    for (const secret of receiver.secrets)
      expect(told.map(everythingOf).join()).not.toContain(secret)
  })

  test('a signal that aborted before the send sends nothing and loses no answer', async () => {
    const { receiver, failure } = await arrange(type)
    const error = await failure({ signal: AbortSignal.abort() })
    expect(isAnswerLost(error.reason)).toBe(false)
    await setImmediate()
    expect(receiver.received()).toEqual([])
  })

  test('asked on a live connection, a no writes nothing and loses no answer', async () => {
    const { receiver, sink, failure } = await arrange(type)
    const connections: number[] = []
    const mayBegin = (): boolean => {
      connections.push(receiver.openConnections())
      return false
    }
    expect((await failure({ mayBegin })).reason).toBe('unavailable')
    expect(connections).toEqual([1])
    await expect.poll(() => receiver.openConnections()).toBe(0) // nobody waits for the rest
    const options = { signal: patience(), mayBegin: () => true }
    await sink.send(aDelivery(sink, { id: 'afterwards' }), options)
    expect(receiver.received().map(({ id }) => id)).toEqual([expect.stringContaining('afterwards')])
  })

  test('after a cut, a hang and a refusal the next message is accepted', async () => {
    const { receiver, send, failure, timeOut } = await arrange(type)
    receiver.answerLost()
    await failure()
    await timeOut()
    await receiver.refuse()
    await failure()
    await receiver.accept()
    expect((await send({ id: 'afterwards' })).id).toContain('afterwards')
  })

  test('closing after a hang leaves no connection behind', async () => {
    const { receiver, sink, timeOut } = await arrange(type)
    await timeOut()
    await sink.close()
    await expect.poll(() => receiver.openConnections()).toBe(0)
  })

  test('no secret stands in an error, its causes, its stack, a log line or the sink itself', async () => {
    const { receiver, sink, failure, timeOut, logged } = await arrange(type)
    expect(receiver.secrets.length).toBeGreaterThan(0)
    const told: unknown[] = [sink, await sink.send(aDelivery(sink), { signal: patience() })]
    receiver.answerLost()
    told.push(await failure())
    told.push(await timeOut())
    for (const { answer } of drivers[type].answers) {
      await receiver.accept()
      receiver.answer(answer)
      told.push(await failure())
    }
    await receiver.refuse()
    told.push(await failure())
    const everything = [...told.map(everythingOf), logged()].join('\n')
    for (const secret of receiver.secrets) expect(everything).not.toContain(secret)
  })

  test('hostile text arrives as inert text', async () => {
    const { receiver, send } = await arrange(type)
    for (const text of hostileTexts) {
      receiver.expectInert(await send({ members: [hostileMember(text)] }))
    }
    expect(receiver.received()).toHaveLength(hostileTexts.length)
  })
})

describe.each(forPeople)('a sink of type %s with several events in a message', (type) => {
  test('every kind of summary is accepted once, under the delivery’s id', async () => {
    const { receiver, send } = await arrange(type)
    const members = manyMembers(12)
    for (const kind of ['group', 'backlog', 'held', 'storm'] as const) {
      const message = await send({ id: `is${kind}`, ...summarised(members, { kind }) })
      expect(message).toMatchObject({ saysRepeat: false })
      expect(message.id).toContain(`is${kind}`)
    }
    const { members: some, summary } = aBusyDigest()
    const digest = await send({ id: 'isdigest', members: some, summary: summary! })
    expect(digest.id).toContain('isdigest')
    expect(receiver.received()).toHaveLength(5)
  })

  test('a summary that may be a repeat says so, and one that is a test', async () => {
    const { send } = await arrange(type)
    const some = summarised(withoutTest(manyMembers(3)))
    expect(await send({ ...some, mayBeRepeat: true, attempt: 2 })).toMatchObject({
      saysRepeat: true,
      saysTest: false,
    })
    expect(await send({ ...some, isTest: true })).toMatchObject({ saysTest: true })
  })

  test('hostile text in a summary arrives as inert text', async () => {
    const { receiver, send } = await arrange(type)
    for (const text of hostileTexts) {
      receiver.expectInert(await send(hostileDigest(text)))
      const members = [hostileMember(text), hostileMember(text)]
      const labels = { type: text, [text]: text }
      receiver.expectInert(await send(summarised(members, { labels, route: text })))
    }
    expect(receiver.received()).toHaveLength(2 * hostileTexts.length)
  })

  test('a summary of ten thousand events of the longest texts is accepted', async () => {
    const { receiver, send } = await arrange(type)
    for (const character of ['&', '"', '😀']) {
      const members = Array.from({ length: 300 }, () => longest(character.repeat(3000)))
      const summary = { ...aSummary(members), total: 10_000 }
      receiver.expectInert(await send({ members, summary }))
    }
    expect(receiver.received()).toHaveLength(3)
  })

  test('the address of a message’s page arrives whole, however many its events are', async () => {
    const { send } = await arrange(type)
    const pageUrl = 'https://tocsin.example.net/messages/b0123456789abcdef'
    for (const text of ['short', '&'.repeat(3000), '😀'.repeat(3000)]) {
      const members = Array.from({ length: 300 }, () => longest(text))
      const summary = { ...aSummary(members), total: 10_000 }
      const { text: raw, decoded = raw } = await send({ members, summary, pageUrl })
      expect(decoded).toContain(pageUrl)
    }
  })

  test('a leaked secret stands in no summary, even where the sink shows secrets', async () => {
    const { send } = await arrange(type)
    const secret = 'clear-7f3e9a51c2'
    const event = aThreatEvent({ type: 'leaked_credential' })
    const members = [aMember({ event, secret }), aMember({ event, secret })]
    const { text } = await send(summarised(members))
    expect(text).not.toContain(secret)
    const single = await send({ members: [members[0]!] })
    expect(single.text).toContain(secret)
  })
})

/** Every variable that holds words of a feed, alone, in markup that the template begins, and joined to a link. */
const joined =
  '{% assign host = "evil example" | split: " " %}https://{{ host[0] }}.{{ host[1] }}/x'
const loud: MessageTemplates = {
  title: 'Case {{ source }} {{ type | upcase }} [{{ tags[0] }}]({{ notes }}) <{{ severity }}>',
  body: `Own line
{{ notes }}
{{ tags | join: "\\n" }}
<b>{{ source }}</b> @{{ type }} <!{{ severity }}> <{{ url }}|{{ source }}>
${joined}
{% for entry in highlights %}{{ entry[0] }}: {{ entry[1] }}
{% endfor %}{{ detail }}
{% for fact in facts %}{{ fact.label }}: {{ fact.value | replace: "[.]", "." | replace: "hxxp", "http" }}
{% endfor %}{{ identifiers | map: "name" }}`,
}

const failing: MessageTemplates = {
  title: 'Case {% if source == "boom" %}{% for i in (1..300000) %}{{ i }}{% endfor %}{% endif %}',
}

describe.each(forPeople)('a sink of type %s with templates', (type) => {
  test('the words of its templates arrive', async () => {
    const { receiver, send } = await arrange(type, loud)
    const { text } = await send()
    expect(receiver.received()).toHaveLength(1)
    expect(text).toContain('Own line')
    expect(text).toContain('Case stealer_logs_live')
  })

  test('hostile text in them arrives as inert text', async () => {
    const { receiver, send, failures } = await arrange(type, loud)
    for (const text of hostileTexts) {
      const message = await send({ members: [hostileMember(text)] })
      expect(message.text).toContain('Own line')
      receiver.expectInert(message)
    }
    expect(failures).toEqual([])
    expect(receiver.received()).toHaveLength(hostileTexts.length)
  })

  test('a message whose template fails arrives with the built-in title, and one line says so', async () => {
    const { receiver, sink, send, failures } = await arrange(type, failing)
    const { text } = await send({ members: [hostileMember('boom')] })
    expect(receiver.received()).toHaveLength(1)
    expect(text).not.toContain('Case')
    expect(failures).toEqual([
      {
        sink: sink.name,
        template: 'title',
        problem: expect.stringMatching(/^it .* \(line 1, column \d+ of the template\)$/),
      },
    ])
  })
})

interface Bench {
  receiver: Receiver<unknown>
  sink: Sink
  /** Sends what must be accepted, and gives the newest message that arrived. */
  send: (content?: Partial<Delivery>) => Promise<Received>
  /** Sends, and gives the SinkError that it must end with. */
  failure: (options?: Partial<SendOptions>) => Promise<SinkError>
  /** The same for a message that is taken and never answered, until its signal aborts. */
  timeOut: () => Promise<SinkError>
  logged: () => string
  /** Of templates, as the sink told them. */
  failures: TemplateFailure[]
}

async function arrange(type: Type, templates?: MessageTemplates): Promise<Bench> {
  const failures: TemplateFailure[] = []
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const logger = createLogger({ level: 'trace', destination })
  const receiver = await drivers[type].start({
    logger,
    clock: systemClock,
    templates,
    onTemplateFailure: (told) => failures.push(told),
  })
  const { sink } = receiver
  onTestFinished(async () => {
    await sink.close()
    await receiver.stop()
  })

  async function send(content: Partial<Delivery> = {}): Promise<Received> {
    await sink.send(aDelivery(sink, content), { signal: patience() })
    return receiver.received().at(-1)!
  }

  async function failure(options: Partial<SendOptions> = {}): Promise<SinkError> {
    const error = await sink.send(aDelivery(sink), { signal: patience(), ...options }).then(
      ({ answer }) => new Error(`the sink accepted: ${answer}`),
      (thrown: unknown) => thrown,
    )
    logger.error({ err: error }, 'send failed')
    if (!(error instanceof SinkError)) throw error
    return error
  }

  async function timeOut(): Promise<SinkError> {
    receiver.hang()
    const taken = receiver.received().length
    const stop = new AbortController()
    const failed = failure({ signal: stop.signal })
    await expect.poll(() => receiver.received().length).toBe(taken + 1)
    stop.abort()
    return failed
  }

  return { receiver, sink, send, failure, timeOut, failures, logged: () => lines.join('') }
}

/** Far longer than a loopback answer takes, far shorter than a test may. */
function patience(): AbortSignal {
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

function withoutTest(members: DeliveryMember[]): DeliveryMember[] {
  return members.map((member) => ({
    ...member,
    detail: undefined,
    event: { ...member.event, source: 'somewhere' },
  }))
}

function hostileDigest(text: string): Pick<Delivery, 'members' | 'summary'> {
  const members = [hostileMember(text)]
  const digest = digestFacts({
    feeds: [{ feed: text, lastCaughtUpMs: null, isBehind: true }],
    perDay: [
      { day: text, bySeverity: [{ severity: text, count: 3 }] },
      { day: '2026-11-21', bySeverity: [{ severity: 'high', count: 1 }] },
    ],
    alreadySent: [{ severity: text, count: 9 }],
    account: text,
    dead: 1,
    undelivered: [{ severity: text, type: text, uid: text, account: text, title: text }],
  })
  return summarised(members, { kind: 'digest', digest, route: text })
}

function longest(long: string): DeliveryMember {
  return aMember({
    event: aThreatEvent({
      uid: long,
      type: long,
      source: long,
      severity: long,
      url: `https://app.example.com/${'a&'.repeat(900)}`,
      identifiers: [{ id: 1, name: long }],
    }),
    raisedFrom: long,
  })
}

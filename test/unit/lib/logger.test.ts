import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { configKeys } from '../../../src/config/schema.ts'
import { TocsinError } from '../../../src/lib/errors.ts'
import { createLogger, inSteps, listRedactedFields, type Logger } from '../../../src/lib/logger.ts'
import { secretFromText } from '../../../src/lib/config/secret.ts'
import { stillClock } from '../../support/still-clock.ts'

const planted = 'hunter2-planted'

/** What is written while `say` speaks. */
function written(say: (logger: Logger) => void): string {
  let text = ''
  const destination = new Writable({
    write(chunk, _encoding, done) {
      text += String(chunk)
      done()
    },
  })
  say(createLogger({ level: 'trace', destination }))
  return text
}

function lineOf(say: (logger: Logger) => void): Record<string, unknown> {
  return JSON.parse(written(say)) as Record<string, unknown>
}

describe('a line', () => {
  test('is one JSON object with level, time in UTC, message and fields', () => {
    const text = written((logger) => logger.info({ feed: 'brand', pages: 3 }, 'polled'))
    expect(text.endsWith('}\n')).toBe(true)
    expect(JSON.parse(text)).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      feed: 'brand',
      pages: 3,
      msg: 'polled',
    })
  })

  test('keeps the kinds of values that parts log', () => {
    const fields = { text: 'a"\nb', no: null, yes: true, count: 0, list: [1, 'two', { three: 3 }] }
    const at = new Date(0)
    expect(lineOf((logger) => logger.info({ ...fields, at, none: undefined }, 'x'))).toMatchObject({
      ...fields,
      at: '1970-01-01T00:00:00.000Z',
    })
  })

  test('below the level is not written', () => {
    let text = ''
    const destination = { write: (line: string): void => void (text += line) }
    const logger = createLogger({ level: 'warn', destination })
    logger.info('quiet')
    logger.warn('loud')
    expect(text).not.toContain('quiet')
    expect(text).toContain('loud')
  })
})

/** Templates have twins for files, too, and hold no secret; `title` and `body` name what a log may show. */
test('a configured secret is redacted under the names that the file and the code give it', () => {
  const keys = configKeys()
  const twins = keys.filter((key) => keys.includes(`${key}_file`) && !key.includes('.templates.'))
  const names = twins.map((key) => key.split('.').at(-1) ?? '')
  expect(names.length).toBeGreaterThan(5)
  expect(listRedactedFields()).toEqual(expect.arrayContaining([...names, 'apiKey', 'routingKey']))
  expect(listRedactedFields()).not.toContain('name')
})

describe.each(listRedactedFields())('a secret under the name %s', (field) => {
  const secret = { [field]: planted, other: 'shown' }
  const cases: [string, (logger: Logger) => void][] = [
    ['at the top', (logger) => logger.info(secret, 'x')],
    ['one level down', (logger) => logger.info({ a: secret }, 'x')],
    ['two levels down', (logger) => logger.info({ a: { b: secret } }, 'x')],
    ['four levels down', (logger) => logger.info({ a: { b: { c: { d: secret } } } }, 'x')],
    ['in a list', (logger) => logger.info({ list: [{ a: [secret] }] }, 'x')],
    [
      'of an object',
      (logger) => logger.info({ [field]: { deep: [planted] }, other: 'shown' }, 'x'),
    ],
    ['of a child logger', (logger) => logger.child(secret).info('x')],
    ['within a child logger', (logger) => logger.child({ a: { b: { c: secret } } }).info('x')],
    ["of a child's child", (logger) => logger.child({ a: 1 }).child(secret).info('x')],
    ['behind toJSON', (logger) => logger.info({ a: { toJSON: () => secret } }, 'x')],
  ]

  test.each(cases)('%s never appears, and its neighbours do', (_place, say) => {
    const text = written(say)
    expect(text).not.toContain(planted)
    expect(text).toContain('<secret>')
    expect(text).toContain('shown')
  })

  test('on an error never appears', () => {
    const error = Object.assign(new Error('refused'), { [field]: planted, request: secret })
    const text = written((logger) => {
      logger.warn({ err: error }, 'x')
      logger.warn({ failure: error, all: [error] }, 'x')
      logger.warn(error)
    })
    expect(text).toContain('refused')
    expect(text).not.toContain(planted)
  })
})

describe('secrets without a telling name', () => {
  test('a Secret prints as <secret> under any name', () => {
    const line = lineOf((logger) => logger.info({ any: { key: secretFromText(planted) } }, 'x'))
    expect(line).toMatchObject({ any: { key: '<secret>' } })
  })

  test("a Redis error's command stays out, under any name", () => {
    const error = Object.assign(new Error('WRONGPASS'), { command: { args: ['user', planted] } })
    expect(written((logger) => logger.warn({ failure: error }, 'x'))).not.toContain(planted)
  })
})

describe('errors', () => {
  class Refused extends TocsinError {
    override readonly name = 'Refused'
    readonly code = 'TOCSIN_REFUSED'
    readonly reason = 'rate_limited'
    readonly retryAfterMs = 10_000
  }

  test("the world's say name, code, reason, message and cause, without a stack", () => {
    const error = new Refused('too many requests', { cause: new Error('socket closed') })
    expect(lineOf((logger) => logger.warn({ err: error }, 'poll failed'))['err']).toEqual({
      name: 'Refused',
      code: 'TOCSIN_REFUSED',
      reason: 'rate_limited',
      retryAfterMs: 10_000,
      message: 'too many requests',
      cause: 'socket closed',
    })
  })

  test.each(['ECONNREFUSED', 'EAI_AGAIN'])('%s is the world, and has no stack', (code) => {
    const error = Object.assign(new Error('connect'), { code })
    const line = lineOf((logger) => logger.warn({ err: error }, 'x'))
    expect(line['err']).toEqual({ name: 'Error', code, message: 'connect' })
  })

  test('what Node finds wrong in our calls comes with its stack', () => {
    const error = Object.assign(new TypeError('the "path"'), { code: 'ERR_INVALID_ARG_TYPE' })
    expect(lineOf((logger) => logger.warn({ err: error }, 'x'))['err']).toHaveProperty('stack')
  })

  test('ours come with their stack', () => {
    const line = lineOf((logger) => logger.error({ err: new TypeError('undefined is not') }, 'x'))
    expect(line['err']).toMatchObject({
      name: 'TypeError',
      stack: expect.stringContaining('logger.test.ts'),
    })
  })

  test('what is thrown and no error is told as text', () => {
    expect(lineOf((logger) => logger.error({ err: 'plain' }, 'x'))['err']).toEqual({
      message: 'plain',
    })
  })
})

test('an object that holds itself ends', () => {
  const circle: Record<string, unknown> = { name: 'circle' }
  circle['self'] = circle
  expect(written((logger) => logger.info({ circle }, 'x'))).toContain('<deeper>')
})

describe('lines in steps', () => {
  const clock = stillClock()
  const writes: string[] = []
  const steps = inSteps({ write: (text) => void writes.push(text) }, clock)

  test('wait for others until the step is over', async () => {
    steps.write('one\n')
    steps.write('two\n')
    expect(writes.splice(0)).toEqual([])
    clock.expire(0.1)
    await Promise.resolve()
    expect(writes.splice(0)).toEqual(['one\ntwo\n'])
    expect(clock.waits()).toEqual([])
  })

  test('that are long wait for nothing', () => {
    steps.write('long '.repeat(4_000))
    expect(writes.splice(0)).toHaveLength(1)
  })

  test('are written before a flush returns', () => {
    steps.write('last\n')
    let isDone = false
    steps.flush?.(() => (isDone = true))
    expect([writes.splice(0), isDone]).toEqual([['last\n'], true])
  })
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseErrorBody } from '../../../src/upstream/failures.ts'

describe('why the service refused', () => {
  test('is read from an error object', () => {
    const body = { error: { code: 'RATELIMIT_REACHED', message: 'Slow down', data: null } }
    expect(parseErrorBody(JSON.stringify(body))).toEqual({
      code: 'RATELIMIT_REACHED',
      message: 'Slow down',
    })
  })

  test('is read from validation details, with integers in the place', () => {
    const detail = [{ loc: ['body', 'filters', 0], msg: 'field required', type: 'x', input: 'no' }]
    expect(parseErrorBody(JSON.stringify({ detail }))).toEqual({
      message: 'body.filters.0: field required',
      details: [{ loc: 'body.filters.0', msg: 'field required' }],
    })
  })

  test('is read from message and code at the top', () => {
    const body = JSON.stringify({ message: 'Bad query', code: 'BAD_QUERY' })
    expect(parseErrorBody(body)).toEqual({ code: 'BAD_QUERY', message: 'Bad query' })
  })

  test.each([
    ['upstream request timeout', 'upstream request timeout'],
    ['<html><body>502</body></html>', 'an HTML page'],
    ['<!DOCTYPE html><p>no', 'an HTML page'],
    ['{"detail":"Not Found"}', 'Not Found'],
    ['{"error":"no"}', 'no'],
    ['', ''],
    ['null', ''],
    ['{}', ''],
    ['[1]', ''],
    ['a\r\nX-Forged: yes\u0000\u202E', 'a X-Forged: yes'],
  ])('%j says %j', (body, message) => {
    expect(parseErrorBody(body).message).toBe(message)
  })

  test('never repeats a secret, even one that the service echoes', () => {
    const body = JSON.stringify({
      message: 'bad Bearer opaque.token-1 for fw_live_12345 at https://u:pw@host, key k3y/secret',
      code: 'k3y/secret',
    })
    const said = JSON.stringify(parseErrorBody(body, ['k3y/secret']))
    for (const secret of ['opaque.token-1', 'fw_live_12345', 'u:pw', 'k3y/secret']) {
      expect(said).not.toContain(secret)
    }
    expect(said).toContain('<secret>')
  })

  test('is one line of at most 300 characters, whatever the body', () => {
    const body = fc.oneof(
      fc.string({ maxLength: 2000 }),
      fc.json(),
      fc
        .record({ message: fc.string({ minLength: 290, maxLength: 900 }) })
        .map((it) => JSON.stringify(it)),
    )
    fc.assert(
      fc.property(body, (text) => {
        const { message } = parseErrorBody(text)
        expect(Array.from(message).length).toBeLessThanOrEqual(300)
        expect(message).not.toMatch(/[\r\n]/)
      }),
    )
  })
})

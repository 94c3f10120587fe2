/** What cannot be provoked over a real connection in milliseconds; the rest is in the integration tests. */
import { expect, test } from 'vitest'
import { errors } from 'undici'
import { SinkError } from '../../../src/sinks/sink.ts'
import { errorFromFailure } from '../../../src/sinks/http.ts'

function coded(code: string): Error {
  return Object.assign(new Error('failed'), { code })
}

test.each([
  ['a connection that takes too long', new errors.ConnectTimeoutError(), false, 'unavailable'],
  ['a closed agent', new errors.ClientDestroyedError(), false, 'unavailable'],
  ['headers that take too long', new errors.HeadersTimeoutError(), true, 'timeout'],
  ['a body that takes too long', new errors.BodyTimeoutError(), true, 'timeout'],
  ['a broken pipe', coded('EPIPE'), true, 'connection_lost'],
  ['headers that are too large', new errors.HeadersOverflowError(), true, 'connection_lost'],
  ['an error without a code', new Error('odd'), true, 'connection_lost'],
  ['a value that is no error', 'odd', false, 'unavailable'],
  ['an expired certificate', coded('CERT_HAS_EXPIRED'), false, 'misconfigured'],
  ['a missing issuer', coded('UNABLE_TO_GET_ISSUER_CERT_LOCALLY'), false, 'misconfigured'],
  [
    'a wanted client certificate',
    coded('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'),
    true,
    'misconfigured',
  ],
] as const)('%s is classified', (_title, error, wasWritten, reason) => {
  const failure = errorFromFailure({ error, wasWritten, wasAborted: false })
  expect(failure.reason).toBe(reason)
  expect(failure.cause).toBe(error)
})

test.each([
  [false, 'unavailable'],
  [true, 'timeout'],
] as const)('an abort with the request written: %s', (wasWritten, reason) => {
  const error = new errors.RequestAbortedError()
  expect(errorFromFailure({ error, wasWritten, wasAborted: true })).toMatchObject({ reason })
})

test('a refusal of the address guard stays what it is', () => {
  const error = new SinkError('forbidden_address', 'loopback')
  expect(errorFromFailure({ error, wasWritten: false, wasAborted: false })).toBe(error)
})

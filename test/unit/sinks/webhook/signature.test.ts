import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { sign } from '../../../../src/sinks/webhook/signature.ts'

const example = {
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: 1614265330,
  body: '{"test": 2432232314}',
}
const exampleSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const exampleSignature = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='

test('the example of the Standard Webhooks specification is signed as it says', () => {
  expect(sign(example, exampleSecret)).toBe(exampleSignature)
})

test('a secret without the prefix counts as its UTF-8 bytes', () => {
  const long = 'une clé de 24 octets au moins'
  const content = `${example.id}.${example.timestamp}.${example.body}`
  const expected = createHmac('sha256', Buffer.from(long, 'utf8')).update(content).digest('base64')
  expect(sign(example, long)).toBe(`v1,${expected}`)
})

test('the bytes of the body are signed, beyond ASCII too', () => {
  const body = '{"note":"é\u{1F600}"}'
  const content = Buffer.from(`${example.id}.${example.timestamp}.${body}`, 'utf8')
  const key = Buffer.from(exampleSecret.slice('whsec_'.length), 'base64')
  const expected = createHmac('sha256', key).update(content).digest('base64')
  expect(sign({ ...example, body }, exampleSecret)).toBe(`v1,${expected}`)
})

test.each([
  '',
  'whsec_',
  'whsec_not base64!',
  'whsec_====',
  'whsec_a-b_c',
  'whsec_A',
  'a',
  `whsec_${'not base64! '.repeat(9)}`,
  `whsec_!${'A'.repeat(40)}`,
  'k'.repeat(23),
])('the secret %j is refused without being repeated', (secret) => {
  expect(() => sign(example, secret)).toThrow(/signing secret/)
  expect(() => sign(example, secret)).not.toThrow(/not base64!|a-b_c/)
})

import { createCipheriv } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { scanForSecrets } from './scan-for-secrets.ts'
import { planted } from './planted-secrets.ts'

/** Written by other means than the scanner's own where there are any. */
const spellings: Record<string, (secret: string) => string | Uint8Array> = {
  'as it is': (secret) => `before ${secret} after`,
  'in JSON': (secret) => JSON.stringify({ deep: [{ said: `x${secret}y` }] }),
  'in JSON within JSON': (secret) => JSON.stringify({ body: JSON.stringify({ secret }) }),
  'in the query of a URL': (secret) => {
    const url = new URL('https://host/path')
    url.searchParams.set('key', secret)
    return url.href
  },
  'in the path of a URL': (secret) => `https://host/${encodeURIComponent(secret)}/x`,
  'in a URL in lower case': (secret) => encodeURIComponent(secret).toLowerCase(),
  'as the password of a URL': (secret) => {
    const url = new URL('https://user@host/')
    url.password = secret
    return url.href
  },
  'in base64': (secret) => Buffer.from(secret).toString('base64'),
  'in base64 behind a user': (secret) => Buffer.from(`analyst:${secret}`).toString('base64'),
  'in base64 between NULs': (secret) => Buffer.from(`\0user1\0${secret}`).toString('base64'),
  'in base64 within a text': (secret) => Buffer.from(`ab${secret}, and more`).toString('base64'),
  'in base64url': (secret) => Buffer.from(`a${secret}`).toString('base64url'),
  'in hexadecimal': (secret) => Buffer.from(secret).toString('hex').toUpperCase(),
  'in HTML': (secret) =>
    `<p title="${secret.replace(/[&<>"']/g, (character) => `&${{ '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": '#39' }[character]};`)}">`,
  'in bytes among other bytes': (secret) =>
    Buffer.concat([Buffer.from([0, 255, 200]), Buffer.from(secret), Buffer.from([128, 0])]),
}

const secrets = { ...planted, odd: `a"b\\c&d<e>'f g+h/i=j?k%l#m`, wide: 'pässwörter-für-Übung' }

test('any secret of eight characters or more is found in each spelling', () => {
  const drawn = fc.string({ unit: 'grapheme', minLength: 8, maxLength: 40 })
  const anySecret = fc.oneof(drawn, fc.constantFrom(...Object.values(secrets)))
  fc.assert(
    fc.property(anySecret, (secret) => {
      fc.pre(!/^[.\s]+$/.test(secret))
      for (const write of Object.values(spellings)) {
        const found = scanForSecrets([{ where: 'there', content: write(secret) }], { secret })
        expect(found).toEqual(['secret in there'])
      }
    }),
    { numRuns: 200 },
  )
})

test('what holds none is not blamed, masked and encrypted ones included', () => {
  const cipher = createCipheriv('aes-256-gcm', Buffer.alloc(32), Buffer.alloc(12))
  const outputs = Object.values(planted).flatMap((secret) => [
    { where: 'masked', content: `${secret[0]}***${secret.at(-1)}` },
    { where: 'encrypted', content: cipher.update(secret) },
  ])
  expect(scanForSecrets(outputs, planted)).toEqual([])
})

test('several are told apart, each place once', () => {
  const outputs = [
    { where: 'log', content: `${planted.apiKey} ${planted.apiKey} ${planted.smtpPassword}` },
    { where: 'page', content: planted.apiKey },
    { where: 'mail', content: 'nothing' },
  ]
  expect(scanForSecrets(outputs, planted)).toEqual([
    'apiKey in log',
    'smtpPassword in log',
    'apiKey in page',
  ])
})

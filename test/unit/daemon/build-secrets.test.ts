import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { buildSecrets } from '../../../src/delivery/send/leaked-secrets.ts'
import type { Config } from '../../../src/config/config.ts'
import { createLogger } from '../../../src/lib/logger.ts'
import { secretFromFile, secretFromText } from '../../../src/lib/config/secret.ts'

test('an API key that cannot be read is told once an account, however many credentials come', () => {
  const lines: string[] = []
  const destination = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const config = {
    accounts: [
      { name: 'one', apiKey: secretFromFile('/nowhere/one') },
      { name: 'two', apiKey: secretFromFile('/nowhere/two') },
      { name: 'well', apiKey: secretFromText('key') },
    ],
    sinks: [{ reveal: true }],
  } as unknown as Config
  const { seal, pairId } = buildSecrets({ config, logger: createLogger({ destination }) })
  for (let n = 0; n < 3; n += 1) {
    for (const account of ['one', 'two']) {
      expect(seal!(account, `credential/${n}`, 'Pangolin')).toBeUndefined()
      expect(pairId(account, ['Pangolin'])).toBeUndefined()
    }
    expect(seal!('well', `credential/${n}`, 'Pangolin')).toBeDefined()
  }
  expect(lines.map((line) => (JSON.parse(line) as { account: string }).account)).toEqual([
    'one',
    'two',
  ])
  expect(lines.join('')).not.toContain('Pangolin')
})

test('a seal moved to the record of another account or uid does not open, though both have one API key', () => {
  const config = {
    accounts: ['one', 'two'].map((name) => ({ name, apiKey: secretFromText('key') })),
    sinks: [{ reveal: true }],
  } as unknown as Config
  const { seal, open } = buildSecrets({ config, logger: createLogger({ level: 'silent' }) })
  const sealed = seal!('one', 'credential/1', 'Pangolin')!
  expect(open('one', 'credential/1', sealed)).toBe('Pangolin')
  expect(open('two', 'credential/1', sealed)).toBeUndefined()
  expect(open('one', 'credential/2', sealed)).toBeUndefined()
})

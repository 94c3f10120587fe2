import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { format, inspect } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { secretFromFile, secretFromText } from '../../../src/lib/config/secret.ts'

const folder = mkdtempSync(join(tmpdir(), 'tocsin-secret-'))
afterAll(() => rmSync(folder, { recursive: true }))

const planted = 'hunter2-planted'

describe('a secret', () => {
  const secret = secretFromText(planted)
  /** As careless code would use it. */
  const asText = secret as unknown as string

  test('reveals its value where it is asked to', () => {
    expect(secret.reveal()).toBe(planted)
  })

  test.each<[string, () => string]>([
    ['in a template', () => `${asText}`],
    ['joined', () => [secret, secret].join(' ')],
    ['as a text', () => String(secret)],
    ['as JSON', () => JSON.stringify({ secret })],
    ['inspected', () => inspect({ deep: { secret } }, { showHidden: true, depth: null })],
    ['formatted', () => format('%s %o %j', secret, secret, secret)],
    ['copied', () => JSON.stringify({ ...secret })],
    ['in the message of an error', () => new Error(`bad ${asText}`).message],
  ])('prints as <secret> %s', (_place, print) => {
    expect(print()).toContain('<secret>')
    expect(print()).not.toContain(planted)
  })

  test('does not print itself without its own rule for inspecting either', () => {
    expect(inspect(secret, { customInspect: false, showHidden: true })).not.toContain(planted)
  })
})

describe('a secret in a file', () => {
  test('is read at each use and trimmed, so that it can be changed under a running process', () => {
    const path = join(folder, 'key')
    writeFileSync(path, `  ${planted}\n`)
    const secret = secretFromFile(path)
    expect(secret.reveal()).toBe(planted)
    writeFileSync(path, 'rotated\n')
    expect(secret.reveal()).toBe('rotated')
  })

  test('may be missing until it is used, and is then named', () => {
    const path = join(folder, 'missing')
    const secret = secretFromFile(path)
    expect(() => secret.reveal()).toThrow(path)
  })
})

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createPrivateFile } from '../../../src/lib/config/private-files.ts'

test('a file is created whole, for this user alone, and never in place of another', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-private-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'report')
  createPrivateFile(file, Buffer.from([0, 255]))
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(() => createPrivateFile(file, 'mine')).toThrow('EEXIST')
  expect(readFileSync(file)).toEqual(Buffer.from([0, 255]))
  expect(readdirSync(folder)).toEqual(['report'])
})

import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { createFileWatch } from '../../../src/config/file-watch.ts'

const root = mkdtempSync(join(tmpdir(), 'tocsin-watch-'))
afterAll(() => rmSync(root, { recursive: true }))
let file: string
let secret: string
let count = 0

beforeEach(() => {
  const folder = join(root, String((count += 1)))
  mkdirSync(folder)
  file = join(folder, 'tocsin.yaml')
  secret = join(folder, 'key')
  writeFileSync(file, 'a')
  writeFileSync(secret, 'k')
})

test('says nothing while nothing changes', () => {
  const watch = createFileWatch([file, secret])
  expect([1, 2, 3].map(() => watch.lookOnce([file, secret]))).toEqual([false, false, false])
})

test('says once that a file changed, when it has been at rest for a look', () => {
  const watch = createFileWatch([file])
  writeFileSync(file, 'half')
  expect(watch.lookOnce([file])).toBe(false)
  writeFileSync(file, 'half and whole')
  expect([1, 2, 3].map(() => watch.lookOnce([file]))).toEqual([false, true, false])
})

test('sees a file that replaces another by rename, with the same length', () => {
  const watch = createFileWatch([file])
  writeFileSync(`${file}.new`, 'b')
  renameSync(`${file}.new`, file)
  watch.lookOnce([file])
  expect(watch.lookOnce([file])).toBe(true)
})

test('sees a secret behind a folder of links that is swapped, as a ConfigMap is', () => {
  const folder = join(root, `map${count}`)
  mkdirSync(join(folder, '..1'), { recursive: true })
  mkdirSync(join(folder, '..2'))
  writeFileSync(join(folder, '..1/key'), 'k')
  writeFileSync(join(folder, '..2/key'), 'k')
  symlinkSync('..1', join(folder, '..data'))
  symlinkSync('..data/key', join(folder, 'key'))
  const files = [join(folder, 'key')]
  const watch = createFileWatch(files)
  symlinkSync('..2', join(folder, '..next'))
  renameSync(join(folder, '..next'), join(folder, '..data'))
  watch.lookOnce(files)
  expect(watch.lookOnce(files)).toBe(true)
})

test('a file that is gone and back is two changes; one that is newly named is none', () => {
  const watch = createFileWatch([file])
  rmSync(file)
  watch.lookOnce([file])
  expect(watch.lookOnce([file])).toBe(true)
  writeFileSync(file, 'a')
  watch.lookOnce([file])
  expect(watch.lookOnce([file])).toBe(true)
  expect([1, 2].map(() => watch.lookOnce([file, secret]))).toEqual([false, false])
})

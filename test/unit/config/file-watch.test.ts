import { execFileSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import fileSystem from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { readContents } from '../../../src/config/file-contents.ts'
import { createFileWatch, type FileWatch } from '../../../src/config/file-watch.ts'
import { beforeNext } from '../../support/meanwhile.ts'

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

/** What so many looks say. */
async function looks(watch: FileWatch, times: number): Promise<boolean[]> {
  const said: boolean[] = []
  for (let look = 0; look < times; look += 1) said.push(await watch.lookOnce())
  return said
}

/** A watch that has seen the files at rest. */
async function settled(files: readonly string[]): Promise<FileWatch> {
  const watch = createFileWatch(readContents(files))
  expect(await looks(watch, 3)).toEqual([false, false, false])
  return watch
}

test('says nothing while nothing changes, nor when a file is only touched', async () => {
  const watch = await settled([file, secret])
  utimesSync(file, 1, 1)
  expect(await looks(watch, 3)).toEqual([false, false, false])
})

test('files at rest are not read again: there may be thousands, on a network mount', async () => {
  const watch = await settled([file, secret])
  const read = vi.fn<() => void>()
  beforeNext(fileSystem, ['open'], read)
  await looks(watch, 3)
  expect(read).not.toHaveBeenCalled()
})

test('says once that a file changed, when it has been at rest for a look', async () => {
  const watch = await settled([file])
  writeFileSync(file, 'half')
  expect(await watch.lookOnce()).toBe(false)
  writeFileSync(file, 'half and whole')
  expect(await looks(watch, 3)).toEqual([false, true, false])
})

test('sees what changed after it was read and before the first look', async () => {
  const read = readContents([file, secret])
  writeFileSync(secret, 'other')
  expect(await looks(createFileWatch(read), 3)).toEqual([false, true, false])
})

test('a file that changes while it is read is left alone until it is at rest', async () => {
  const watch = await settled([file])
  writeFileSync(file, 'half')
  expect(await watch.lookOnce()).toBe(false)
  beforeNext(fileSystem, ['open'], () => writeFileSync(file, 'half and whole'))
  expect(await looks(watch, 4)).toEqual([false, true, false, false])
})

test('what a reload takes in the middle of a look is no change', async () => {
  const watch = await settled([file, secret])
  writeFileSync(file, 'b')
  expect(await watch.lookOnce()).toBe(false)
  // the states of both are compared once more after both were read: that of the first one just was
  beforeNext(fileSystem, ['open', 'open', 'stat', 'stat'], () => {
    writeFileSync(file, 'changed again')
    watch.taken(readContents([file, secret]))
  })
  expect(await looks(watch, 4)).toEqual([false, false, false, false])
})

test('sees a file that replaces another by rename, with the same length', async () => {
  const watch = await settled([file])
  writeFileSync(`${file}.new`, 'b')
  renameSync(`${file}.new`, file)
  expect(await looks(watch, 3)).toEqual([false, true, false])
})

test('sees a secret behind a folder of links that is swapped, as a ConfigMap is', async () => {
  const folder = join(root, `map${count}`)
  for (const [version, text] of ['k', 'k', 'new'].entries()) {
    mkdirSync(join(folder, `..${version}`), { recursive: true })
    writeFileSync(join(folder, `..${version}/key`), text)
  }
  symlinkSync('..0', join(folder, '..data'))
  symlinkSync('..data/key', join(folder, 'key'))
  const watch = await settled([join(folder, 'key')])
  const swap = (version: number): void => {
    symlinkSync(`..${version}`, join(folder, '..next'))
    renameSync(join(folder, '..next'), join(folder, '..data'))
  }
  swap(1)
  expect(await looks(watch, 3)).toEqual([false, false, false])
  swap(2)
  expect(await looks(watch, 3)).toEqual([false, true, false])
})

test('a file that is gone and back is two changes', async () => {
  const watch = await settled([file])
  rmSync(file)
  expect(await looks(watch, 3)).toEqual([false, true, false])
  writeFileSync(file, 'a')
  expect(await looks(watch, 3)).toEqual([false, true, false])
})

test('what a reload has read is no change, and what changed since it read is one', async () => {
  const watch = await settled([file])
  writeFileSync(file, 'b')
  watch.taken(readContents([file, secret]))
  expect(await looks(watch, 3)).toEqual([false, false, false])
  const read = readContents([file, secret])
  writeFileSync(secret, 'l')
  watch.taken(read)
  expect(await looks(watch, 3)).toEqual([false, true, false])
})

test('after a refusal its files are looked at beside those of the configuration that runs', async () => {
  const [missing, unnamed] = [`${secret}.missing`, `${secret}.unnamed`]
  writeFileSync(unnamed, 'u')
  const watch = await settled([file, secret])
  writeFileSync(file, 'names another')
  expect(await looks(watch, 2)).toEqual([false, true])
  watch.refused(readContents([file, missing]))
  expect(await looks(watch, 3)).toEqual([false, false, false])
  writeFileSync(missing, 'there')
  expect(await looks(watch, 2)).toEqual([false, true])
  watch.refused(readContents([file, missing]))
  writeFileSync(secret, 'of what runs')
  expect(await looks(watch, 2)).toEqual([false, true])
  watch.refused(readContents([file]))
  expect(await looks(watch, 3)).toEqual([false, false, false])
  writeFileSync(missing, 'no longer named')
  writeFileSync(unnamed, 'never named')
  expect(await looks(watch, 3)).toEqual([false, false, false])
})

test('after a refusal those of the configuration that ran before are looked at no longer', async () => {
  const named = `${file}.named`
  writeFileSync(named, 'n')
  const watch = await settled([file, secret])
  watch.taken(readContents([file, named]))
  watch.refused(readContents([file]))
  expect(await looks(watch, 3)).toEqual([false, false, false])
  writeFileSync(named, 'of what runs')
  expect(await looks(watch, 2)).toEqual([false, true])
  writeFileSync(secret, 'of what ran')
  expect(await looks(watch, 3)).toEqual([false, false, false])
})

test('a pipe is neither waited for nor a change', async () => {
  const pipe = `${file}.pipe`
  execFileSync('mkfifo', [pipe])
  const watch = createFileWatch(new Map([[pipe, 'what came through it'], ...readContents([file])]))
  expect(await looks(watch, 3)).toEqual([false, false, false])
  writeFileSync(file, 'bb') // longer, should its time not tell
  expect(await looks(watch, 3)).toEqual([false, true, false])
})

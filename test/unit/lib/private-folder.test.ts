import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { execFileSync } from 'node:child_process'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import {
  createPrivateFile,
  createProcessFolder,
  isOwnSocket,
  openPrivateLog,
  replacePrivateFile,
  checkPrivateFolder,
  removeLeftFolders,
} from '../../../src/lib/config/private-files.ts'

let outer = ''
let folder = ''
beforeEach(() => {
  outer = mkdtempSync(join(tmpdir(), 'tocsin-private-'))
  folder = join(outer, 'state')
})
afterEach(() => rmSync(outer, { recursive: true, force: true }))

test('a folder that is missing is made for this user alone', () => {
  expect(checkPrivateFolder(folder)).toBeUndefined()
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test.each([0o750, 0o701, 0o777])(
  'one that others may enter (%o) is refused with the command that closes it',
  (mode) => {
    mkdirSync(folder)
    chmodSync(folder, mode)
    expect(checkPrivateFolder(folder)).toContain(`run: chmod 700 ${folder}`)
    chmodSync(folder, 0o700)
    expect(checkPrivateFolder(folder)).toBeUndefined()
  },
)

test('a link to a folder is refused', () => {
  mkdirSync(folder, { mode: 0o700 })
  symlinkSync(folder, join(outer, 'link'))
  expect(checkPrivateFolder(join(outer, 'link'))).toContain('symbolic link')
})

test.runIf(process.getuid?.() === 0)(
  'a folder or a socket of another user is refused by name',
  async () => {
    mkdirSync(folder, { mode: 0o700 })
    const path = join(folder, 'redis.sock')
    const server = createServer().listen(path)
    await new Promise((resolve) => server.once('listening', resolve))
    expect(isOwnSocket(path)).toBe(true)
    chownSync(path, 65_534, 65_534)
    expect(isOwnSocket(path)).toBe(false)
    chownSync(folder, 65_534, 65_534)
    expect(checkPrivateFolder(folder)).toBe(
      'it belongs to user 65534, and this is user 0; name a folder of your own',
    )
    await new Promise((resolve) => server.close(resolve))
  },
)

test('a link in place of a file overwrites nothing elsewhere', () => {
  mkdirSync(folder, { mode: 0o700 })
  const diary = join(outer, 'diary')
  writeFileSync(diary, 'dear diary')
  symlinkSync(diary, join(folder, 'redis.log'))
  symlinkSync(diary, join(folder, 'redis.conf'))
  expect(() => closeSync(openPrivateLog(join(folder, 'redis.log')))).toThrow('ELOOP')
  replacePrivateFile(join(folder, 'redis.conf'), 'port 0')
  expect(readFileSync(diary, 'utf8')).toBe('dear diary')
  expect(readFileSync(join(folder, 'redis.conf'), 'utf8')).toBe('port 0')
  expect(readdirSync(folder).toSorted()).toEqual(['redis.conf', 'redis.log'])
})

test('a log goes on where it ended, and begins anew once it is long', () => {
  mkdirSync(folder, { mode: 0o700 })
  const path = join(folder, 'redis.log')
  const append = (line: string): void => {
    const file = openPrivateLog(path)
    writeSync(file, line)
    closeSync(file)
  }
  append('why it died\n')
  append('started again\n')
  expect(readFileSync(path, 'utf8')).toBe('why it died\nstarted again\n')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  append('x'.repeat(2 ** 20))
  append('a new beginning\n')
  expect(readFileSync(path, 'utf8')).toBe('a new beginning\n')
})

test('a file is created whole, and never in place of another', () => {
  mkdirSync(folder, { mode: 0o700 })
  const file = join(folder, 'report')
  createPrivateFile(file, Buffer.from([0, 255]))
  expect(readFileSync(file)).toEqual(Buffer.from([0, 255]))
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(() => createPrivateFile(file, 'mine')).toThrow('EEXIST')
  expect(readFileSync(file)).toEqual(Buffer.from([0, 255]))
  expect(readdirSync(folder)).toEqual(['report'])
})

test('a folder of a process that has ended is removed by the next, and no other one', () => {
  vi.stubEnv('TMPDIR', outer)
  onTestFinished(() => void vi.unstubAllEnvs())
  const module = join(import.meta.dirname, '../../../src/lib/config/private-files.ts')
  const code = `import { createProcessFolder } from ${JSON.stringify(module)}; createProcessFolder('made')`
  execFileSync(process.execPath, ['--input-type=module', '-e', code])
  const own = basename(createProcessFolder('made'))
  const kept = [own, 'made-notes', `made-${process.pid}.-abcdef`, 'made-999999999.1-abcdef']
  mkdirSync(join(outer, 'made-notes'))
  mkdirSync(join(outer, `made-${process.pid}.-abcdef`))
  symlinkSync('/nowhere', join(outer, 'made-999999999.1-abcdef'))
  const made = (): string[] => readdirSync(outer).filter((name) => name.startsWith('made-'))
  expect(made()).toHaveLength(kept.length + 1)
  removeLeftFolders('made')
  expect(made().toSorted()).toEqual(kept.toSorted())
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { dropLockFile, takeLockFile } from '../../../src/runtime/lock-file.ts'

let folder = ''
let path = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-lock-'))
  path = join(folder, 'lock')
})
afterEach(() => {
  dropLockFile(path)
  rmSync(folder, { recursive: true, force: true })
})

/** A process id that nobody has: Linux gives none beyond 4194304. */
const nobody = '4194305'

/** What another process, which lives until `end`, writes as owner. */
async function another(): Promise<{ line: string; end: () => Promise<void> }> {
  const theirs = join(folder, 'theirs')
  const module = join(import.meta.dirname, '../../../src/runtime/lock-file.ts')
  const code = `import { takeLockFile } from ${JSON.stringify(module)}
takeLockFile(${JSON.stringify(theirs)}); console.log('taken'); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  const line = readFileSync(theirs, 'utf8')
  rmSync(theirs)
  return {
    line,
    async end() {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    },
  }
}

test('it is taken once, and again when it was dropped', () => {
  expect(takeLockFile(path)).toBe(true)
  expect(takeLockFile(path)).toBe(false)
  dropLockFile(path)
  expect(existsSync(path)).toBe(false)
  expect(takeLockFile(path)).toBe(true)
})

test('that of another is neither taken nor dropped while it lives', async () => {
  const { line, end } = await another()
  writeFileSync(path, line)
  expect(takeLockFile(path)).toBe(false)
  dropLockFile(path)
  expect(readFileSync(path, 'utf8')).toBe(line)
  await end()
  expect(takeLockFile(path)).toBe(true)
  expect(readdirSync(folder)).toEqual(['lock'])
})

test('one that is abandoned is taken over by one process at a time', async () => {
  const { line, end } = await another()
  writeFileSync(path, nobody)
  writeFileSync(`${path}.turn`, line)
  expect(takeLockFile(path)).toBe(false)
  expect(readFileSync(path, 'utf8')).toBe(nobody)
  await end()
  expect(takeLockFile(path)).toBe(true)
})

test.runIf(process.platform === 'linux')(
  'the id of a process that is gone, which another has by now, keeps nobody out',
  () => {
    writeFileSync(path, `${process.ppid} 1`)
    expect(takeLockFile(path)).toBe(true)
  },
)

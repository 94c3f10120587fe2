import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { dropLockFile, findLockFile, takeLockFile } from '../../../src/lib/config/private-files.ts'

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
  const module = join(import.meta.dirname, '../../../src/lib/config/private-files.ts')
  const code = `import { takeLockFile } from ${JSON.stringify(module)}
takeLockFile(${JSON.stringify(theirs)}); console.log('taken'); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  const line = readFileSync(`${theirs}.1`, 'utf8')
  rmSync(`${theirs}.1`)
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
  expect(takeLockFile(path)).toBe(true)
  expect(readdirSync(folder)).toEqual(['lock.2'])
})

test('that of another is neither taken nor dropped while it lives', async () => {
  const { line, end } = await another()
  writeFileSync(`${path}.7`, line)
  expect(takeLockFile(path)).toBe(false)
  dropLockFile(path)
  expect(readFileSync(findLockFile(path), 'utf8')).toBe(line)
  await end()
  expect(takeLockFile(path)).toBe(true)
  expect(readdirSync(folder)).toEqual(['lock.8'])
})

test('of many processes that find one abandoned, one has it', async () => {
  writeFileSync(`${path}.3`, nobody)
  const module = join(import.meta.dirname, '../../../src/lib/config/private-files.ts')
  const code = `import { takeLockFile } from ${JSON.stringify(module)}
console.log(takeLockFile(${JSON.stringify(path)})); setInterval(() => {}, 1000)`
  const children = Array.from({ length: 6 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  try {
    const said = await Promise.all(
      children.map(async ({ stdout }) => String(await once(stdout, 'data'))),
    )
    expect(said.toSorted()).toEqual([...Array<string>(5).fill('false\n'), 'true\n'])
    expect(readdirSync(folder)).toEqual(['lock.4'])
  } finally {
    for (const child of children) child.kill('SIGKILL')
  }
})

test.runIf(process.platform === 'linux')(
  'the id of a process that is gone, which another has by now, keeps nobody out',
  () => {
    writeFileSync(`${path}.1`, `${process.ppid} 1`)
    expect(takeLockFile(path)).toBe(true)
  },
)

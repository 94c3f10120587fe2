import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadScript } from '../../../src/redis/scripts.ts'

test('a daemon that can open no file any more still has every script, with what it includes', () => {
  const source = join(import.meta.dirname, '../../../src')
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-scripts-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['redis/scripts', 'redis/scripts.ts', 'lib/clock.ts']) {
    cpSync(join(source, name), join(folder, name), { recursive: true })
  }
  const code = `import { rmSync } from 'node:fs'
    import { loadScript } from ${JSON.stringify(join(folder, 'redis/scripts.ts'))}
    rmSync(${JSON.stringify(folder)}, { recursive: true })
    console.log(loadScript('commit-page').sha)`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  expect(loadScript('commit-page').text).not.toContain('@include')
  expect(stdout.trim()).toBe(loadScript('commit-page').sha)
})

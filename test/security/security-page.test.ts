/** SECURITY.md names for each threat the tests that show what holds, and leaves none of them out. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'SECURITY.md'), 'utf8')
const named = [...page.matchAll(/\]\((test\/[^)]+)\)/g)].map(([, path = '']) => path)
const [, table = ''] = page.split('| Threat | What holds | Shown by |\n')
const rows = table.split('\n\n')[0]!.split('\n').slice(1)

test('every threat has what holds and a test that shows it', () => {
  expect(rows.length).toBeGreaterThan(10)
  for (const row of rows) {
    const [threat, holds, shown] = row.split('|').slice(1, -1)
    expect([threat!.trim(), holds!.trim()]).not.toContain('')
    expect(shown).toMatch(/\]\(test\/[\w/-]+\.test\.ts\)/)
  }
})

test.each([...new Set(named)])('%s is there', (path) => {
  expect(existsSync(join(root, path))).toBe(true)
})

test('no test of this folder is left out', () => {
  const tests = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.ts'))
  const others = tests.filter((name) => name !== 'security-page.test.ts')
  expect(others.filter((name) => !named.includes(`test/security/${name}`))).toEqual([])
})

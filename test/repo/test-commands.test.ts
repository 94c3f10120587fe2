/** `npm test` and `npm run test:faults` share the test files between them, and CI runs both. */
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>
}

/** What the script of package.json would run, as Vitest lists it. */
function filesRunBy(script: string): string[] {
  const [program, command, ...options] = (scripts[script] ?? '').split(' ')
  expect([program, command]).toEqual(['vitest', 'run'])
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const listing = [vitest, 'list', '--filesOnly', '--json', ...options]
  const printed = execFileSync(process.execPath, listing, { cwd: root, encoding: 'utf8' })
  const files = JSON.parse(printed) as { file: string }[]
  return files.map(({ file }) => relative(root, file))
}

test('every test file is run by exactly one of the two commands', () => {
  const all = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => join('test', file))
  const quick = filesRunBy('test')
  const faults = filesRunBy('test:faults')
  expect(quick).not.toEqual([])
  expect(faults).not.toEqual([])
  expect([...quick, ...faults].toSorted()).toEqual(all.toSorted())
})

test('CI runs both commands, then the checks', () => {
  const lines = readFileSync(join(root, '.ci/run'), 'utf8').split('\n')
  const commands = lines.filter((line) => line.startsWith('npm '))
  expect(commands).toEqual(['npm test', 'npm run test:faults', 'npm run check'])
})

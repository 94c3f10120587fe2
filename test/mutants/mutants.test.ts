import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createJudge, type Judge } from './judge.ts'
import { mutantsOfLua } from './lua.ts'
import { mutantsOfTypeScript } from './typescript.ts'

test.each([
  ['a bound', 'const a = b < c', ['const a = b <= c']],
  ['how two conditions meet', 'const a = b && c', ['const a = b || c']],
  ['a sum of times', 'const a = now + later', ['const a = now - later']],
  ['a key', `const a = 'held'`, [`const a = 'held_'`]],
  ['a call whose answer nobody reads', 'release()', [';']],
  ['which of several counts', 'const a = b.some(c)', ['const a = b.every(c)']],
  ['the order of a list', 'const a = b.toSorted(c)', ['const a = b.toSorted(c).toReversed()']],
  ['an entry of a list', 'const a = [b, c]', ['const a = [ c]', 'const a = [b, ]']],
  ['a condition', 'if (a) b = c', ['if (true) b = c', 'if (false) b = c', 'if (a) ;']],
  ['not what a schema says', `const a = f.meta({ description: d, examples: ['monday'] })`, []],
  ['neither types nor words for people', `log.info('held')\ntype A = 'b' | 'c'`, []],
])('of TypeScript %s is changed', (_what, text, expected) => {
  expect(mutantsOfTypeScript('a.ts', text).map(({ is }) => is)).toEqual(expected)
})

test.each([
  ['an inequality', 'local a = b ~= c', ['local a = b == c']],
  ['a command without which a key expires', `redis.call('PERSIST', k)`, ['']],
  ['which end of an index is read', `local a = f('ZRANGE')`, [`local a = f('ZREVRANGE')`]],
  ['a stored field', `local a = f('held')`, [`local a = f('held_')`]],
  ['not which argument is read', 'local a = ARGV[1]', []],
])('of a script %s is changed', (_what, text, expected) => {
  expect(mutantsOfLua('a.lua', text).map(({ is }) => is)).toEqual(expected)
})

describe('a planted project', () => {
  const planted: Record<string, string> = {
    '.gitignore': 'node_modules\n',
    'package.json': '{ "type": "module" }',
    'vitest.config.ts': `export default { test: { projects: [{ test: { name: 'quick', include: ['test/**/*.test.ts'] } }] } }`,
    'src/late.ts': `
export function isLate(ageMs: number): boolean {
  return ageMs > 10
}
export function countTo(last: number): number {
  let count = 0
  while (count !== last) count += 1
  return count
}
`,
    'src/store/hold.ts': `
import { readFileSync } from 'node:fs'
export const script = (name: 'hold'): string =>
  readFileSync(new URL(\`../redis/scripts/\${name}.lua\`, import.meta.url), 'utf8')
export const hold = (): string => script('hold')
`,
    'src/redis/scripts/hold.lua': `redis.call('PERSIST', KEYS[1])\nreturn redis.call('INCR', KEYS[1])\n`,
    'test/late.test.ts': `
import { expect, onTestFinished, test } from 'vitest'
import { countTo, isLate } from '../src/late.ts'
test('ages', () => expect([10, 11].map(isLate)).toEqual([false, true]))
test('counts', () => expect(countTo(3)).toBe(3))
`,
    'test/hold.test.ts': `
import { expect, onTestFinished, test } from 'vitest'
import { hold } from '../src/store/hold.ts'
test('what is held never expires', () => expect(hold()).toContain('PERSIST'))
`,
  }
  const project = join(import.meta.dirname, '../..')
  const root = mkdtempSync(join(tmpdir(), 'tocsin-planted-'))
  let judge: Judge | undefined

  beforeAll(() => {
    for (const [file, text] of Object.entries(planted)) {
      mkdirSync(dirname(join(root, file)), { recursive: true })
      writeFileSync(join(root, file), text)
    }
    cpSync(join(project, 'tsconfig.json'), join(root, 'tsconfig.json'))
    symlinkSync(join(project, 'node_modules'), join(root, 'node_modules'))
    execFileSync('git', ['init', '--quiet'], { cwd: root })
    judge = createJudge(root)
  })
  afterAll(() => {
    judge?.stop()
    rmSync(root, { recursive: true, force: true })
  })

  test.each([
    ['that a test notices is killed', 'src/late.ts', 'return ageMs >= 10', 'killed'],
    ['of a type is invalid', 'src/store/hold.ts', `script('hold_')`, 'invalid'],
    ['of a script is judged by what runs it', 'src/redis/scripts/hold.lua', '', 'killed'],
    ['that none notices survives', 'src/redis/scripts/hold.lua', 'DECR', 'survived'],
  ])('a change %s', async (_what, file, is, verdict) => {
    const text = planted[file] ?? ''
    const all = file.endsWith('.lua') ? mutantsOfLua(file, text) : mutantsOfTypeScript(file, text)
    const mutant = all.find((one) => (is === '' ? one.is === '' : one.is.includes(is)))
    const ofFile = await judge!.of(file)
    expect(ofFile.tests).toHaveLength(1)
    expect(await ofFile.judge(mutant!)).toBe(verdict)
  })

  test('a change that never ends is killed by a judge that waits no longer than usual', async () => {
    const endless = mutantsOfTypeScript('src/late.ts', planted['src/late.ts']!).find(({ is }) =>
      is.includes('count -= 1'),
    )
    const impatient = createJudge(root, 0)
    onTestFinished(() => impatient.stop())
    const ofFile = await impatient.of('src/late.ts')
    expect(await ofFile.judge(endless!)).toBe('killed')
  })
})

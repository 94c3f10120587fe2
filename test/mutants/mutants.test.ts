import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { instrument } from './engine/blocks.ts'
import { drawMutants } from './engine/choose.ts'
import { collectMutants, project } from './engine/collect.ts'
import { learnCoverage, type Learning } from './engine/coverage.ts'
import { findStale, type Equivalent } from './engine/equivalents.ts'
import { mutantsOfLua } from './engine/lua.ts'
import type { Mutant } from './engine/mutant.ts'
import { createJudge, type Judge } from './engine/run-mutants.ts'
import { copyTree, type Tree } from './engine/tree.ts'
import { mutantsOfTypeScript } from './engine/typescript.ts'

const asChanges = (mutants: Mutant[]): string[] => mutants.map(({ was, is }) => `${was} => ${is}`)

describe('what is changed', () => {
  test.each([
    ['a bound', 'const a = b < c', ['const a = b <= c']],
    ['an equality', 'const a = b === c', ['const a = b !== c']],
    ['how two conditions meet', 'const a = b && c', ['const a = b || c']],
    ['a sum of times', 'const a = now + later', ['const a = now - later']],
    ['a count, by one', 'const a = 3', ['const a = 4', 'const a = 2']],
    ['a limit, by ten times', 'const a = 25', ['const a = 250', 'const a = 2']],
    ['no time', 'const a = 60_000', []],
    ['a key', `const a = 'held'`, [`const a = 'held_'`]],
    ['a call whose answer nobody reads', 'release()', [';']],
    ['which of several counts', 'const a = b.some(c)', ['const a = b.every(c)']],
    ['the order of a list', 'const a = b.toSorted(c)', ['const a = b.toSorted(c).toReversed()']],
    ['an entry of a list', 'const a = [b, c]', ['const a = [ c]', 'const a = [b, ]']],
    ['a condition', 'if (a) b = c', ['if (true) b = c', 'if (false) b = c', 'if (a) ;']],
    ['an anchor of a pattern', 'const a = /^b/', ['const a = /b/']],
    [
      'not what a schema says',
      `const a = f.meta({ description: d, examples: ['monday', '3'] })`,
      [],
    ],
    ['neither types nor words for people', `log.info('held')\ntype A = 'b' | 'c'`, []],
  ])('%s', (_what, text, expected) => {
    expect(mutantsOfTypeScript('a.ts', text).map(({ is }) => is)).toEqual(expected)
  })

  test.each([
    ['a bound', 'local a = b < c', ['local a = b <= c']],
    ['an inequality', 'local a = b ~= c', ['local a = b == c']],
    ['a command without which a key expires', `redis.call('PERSIST', k)`, ['']],
    ['which end of an index is read', `local a = f('ZRANGE')`, [`local a = f('ZREVRANGE')`]],
    ['whether an existing key wins', `local a = f('NX')`, [`local a = f('XX')`]],
    ['a stored field', `local a = f('held')`, [`local a = f('held_')`]],
    ['not which argument is read', 'local a = ARGV[1]', []],
  ])('in scripts %s', (_what, text, expected) => {
    expect(mutantsOfLua('a.lua', text).map(({ is }) => is)).toEqual(expected)
  })

  test('a mutant keeps its name when lines come before it', () => {
    const named = (text: string): string[] => asChanges(mutantsOfTypeScript('a.ts', text))
    expect(named('const a = b < c')).toEqual(['const a = b < c => const a = b <= c'])
    expect(named('\n\n  const a = b < c')).toEqual(named('const a = b < c'))
  })
})

describe('a seed', () => {
  const aFile = (text: string) => ({
    room: 'one',
    file: 'a.ts',
    mutants: mutantsOfTypeScript('a.ts', text),
  })
  const draw = (text: string, seed: number): string[] =>
    asChanges(drawMutants([aFile(text)], seed).map(({ mutant }) => mutant))
  const text = 'const a = b < c && d > 3 || [e, f]'

  test('draws each mutant once, in the same order again, and another seed in another', () => {
    expect(draw(text, 7)).toEqual(draw(text, 7))
    expect(draw(text, 8)).not.toEqual(draw(text, 7))
    expect(draw(text, 7).toSorted()).toEqual(asChanges(aFile(text).mutants).toSorted())
  })

  test('keeps its order when lines are added elsewhere', () => {
    const comparisons = 'a < b\nc < d\ne < f\ng < h'
    const more = draw(`i < j\n${comparisons}`, 7).filter((one) => !one.startsWith('i'))
    expect(more).toEqual(draw(comparisons, 7))
  })

  test('gives a small room and a rare operator their turn', () => {
    const many = Array.from({ length: 400 }, (_, at) => `a${at} < b`).join('\n')
    const large = aFile(`${many}\nrelease()`)
    const small = { ...aFile('if (a) release()'), room: 'two' }
    const first = drawMutants([large, small], 7).slice(0, 40)
    expect(first.map(({ room }) => room)).toContain('two')
    const operators = first
      .filter(({ room }) => room === 'one')
      .map(({ mutant }) => mutant.operator)
    expect(new Set(operators)).toEqual(new Set(['comparison', 'call']))
  })
})

describe('explanations', () => {
  test('each explains a mutant that there still is', () => {
    expect(collectMutants(project, []).flatMap(({ mutants }) => mutants).length).toBeGreaterThan(
      1000,
    )
  })

  test('one whose line has changed is found', () => {
    const why = 'a reason that is long enough'
    const one: Equivalent = { file: 'a.ts', was: 'const a = b < c', is: 'const a = b <= c', why }
    expect(findStale([one], mutantsOfTypeScript('a.ts', 'const a = b < c'))).toEqual([])
    expect(findStale([one], mutantsOfTypeScript('a.ts', 'const a = b < d'))).toEqual([one])
  })
})

test('blocks that note that they ran still mean what they meant', () => {
  const text =
    'const f = (a) => a ? (b) => ({ b }) : 2\nif (f) throw 1\nelse { for (const c of d) c() }'
  expect(instrument('a.ts', text, ({ start }) => `n(${start})`)).toBe(
    'const f = (a) => (n(17),a ? (n(21),(b) => (n(28),({ b }))) : (n(38),2))\n' +
      'if (f) {n(47);throw 1}\nelse {n(60); for (const c of d) {n(81);c()} }\n;n(0);\n',
  )
})

describe('a planted pair', { timeout: 120_000 }, () => {
  const planted: Record<string, string> = {
    '.gitignore': 'node_modules\n',
    'package.json': '{ "type": "module" }',
    'src/late.ts': `
export function isLate(ageMs: number): boolean {
  return ageMs > 10
}
export function countTo(last: number): number {
  let count = 0
  while (count !== last) count += 1
  return count
}
export function unread(age: number): boolean {
  return age < 5
}
`,
    'src/hold.ts': `
import { readFileSync } from 'node:fs'
export const script = (name: 'hold'): string =>
  readFileSync(new URL(\`./redis/scripts/\${name}.lua\`, import.meta.url), 'utf8')
export const hold = (): string => script('hold')
`,
    'src/redis/scripts/hold.lua': `redis.call('PERSIST', KEYS[1])\nreturn redis.call('INCR', KEYS[1])\n`,
    'test/unit/late.test.ts': `
import { expect, test } from 'vitest'
import { countTo, isLate } from '../../src/late.ts'
test('ages', () => {
  expect([9, 11].map(isLate)).toEqual([false, true])
})
test('counts', () => {
  expect(countTo(3)).toBe(3)
})
`,
    'test/unit/hold.test.ts': `
import { expect, test } from 'vitest'
import { hold } from '../../src/hold.ts'
test('what is held never expires', () => {
  expect(hold()).toContain('PERSIST')
})
`,
  }
  const root = mkdtempSync(join(tmpdir(), 'tocsin-planted-'))
  const script = 'src/redis/scripts/hold.lua'
  const sources = Object.keys(planted).filter((file) => file.startsWith('src/'))
  let tree: Tree | undefined
  let judge: Judge | undefined

  beforeAll(async () => {
    for (const [file, text] of Object.entries(planted)) {
      mkdirSync(dirname(join(root, file)), { recursive: true })
      writeFileSync(join(root, file), text)
    }
    cpSync(join(project, 'tsconfig.json'), join(root, 'tsconfig.json'))
    symlinkSync(join(project, 'node_modules'), join(root, 'node_modules'))
    execFileSync('git', ['init', '--quiet'], { cwd: root })
    tree = copyTree(root)
    const coverage = await learnCoverage({
      trees: [tree],
      sources,
      cacheFile: join(root, 'coverage.json'),
      tell: () => {},
    })
    judge = createJudge(tree, coverage, 4000)
  })
  afterAll(() => {
    judge?.stop()
    tree?.remove()
    rmSync(root, { recursive: true, force: true })
  })

  async function outcomeOf(file: string, is: string): Promise<unknown> {
    const text = planted[file] ?? ''
    const all = file.endsWith('.lua') ? mutantsOfLua(file, text) : mutantsOfTypeScript(file, text)
    const mutant = all.find((one) => one.is === is)
    expect(mutant, `${is} is no mutant of ${file}`).toBeDefined()
    return judge!.judge(mutant!)
  }

  test('a change that a test notices is killed, by the name of that test', async () => {
    const by = 'test/unit/late.test.ts: ages'
    expect(await outcomeOf('src/late.ts', 'return ageMs > 11')).toEqual({
      kind: 'killed',
      by,
      isTimeout: false,
    })
  })

  test('a change that none notices survives, and one that none reaches says so', async () => {
    expect(await outcomeOf('src/late.ts', 'return ageMs >= 10')).toEqual({
      kind: 'survived',
      tried: 1,
    })
    expect(await outcomeOf('src/late.ts', 'return age <= 5')).toEqual({
      kind: 'survived',
      tried: 0,
    })
  })

  test('what was learned of the tests is kept, and learned anew where the rooms have another file', async () => {
    const asked: string[] = []
    const learning: Pick<Learning, 'trees' | 'cacheFile'> = {
      trees: [tree!],
      cacheFile: join(root, 'coverage.json'),
    }
    const tell = (line: string): void => void asked.push(line)
    await learnCoverage({ ...learning, sources, tell })
    expect(asked).toEqual([])
    await learnCoverage({ ...learning, sources: sources.slice(1), tell })
    expect(asked).toHaveLength(2)
  })

  test('a script is judged by the tests that reached one of those that run it, also where that has changed since', async () => {
    const asked: string[] = []
    const tell = (line: string): void => void asked.push(line)
    const learning = { trees: [tree!] as const, sources, cacheFile: join(root, 'coverage.json') }
    await learnCoverage({ ...learning, tell: () => {} })
    const [mutant] = mutantsOfLua(script, planted[script]!)
    const moved = `// begins later\n${planted['src/hold.ts']!.replace(`name: 'hold'`, 'name: string')}`
    tree!.write('src/hold.ts', moved)
    try {
      const coverage = await learnCoverage({ ...learning, tell })
      expect(coverage.testsFor(mutant!).map(({ file }) => file)).toEqual(['test/unit/hold.test.ts'])
      expect(asked).toEqual([])
    } finally {
      tree!.write('src/hold.ts', planted['src/hold.ts']!)
    }
  })

  test('a change that does not compile is neither', async () => {
    expect(
      await outcomeOf('src/hold.ts', `export const hold = (): string => script('hold_')`),
    ).toEqual({ kind: 'invalid' })
  })

  test('a change that never ends is killed, and the next one is judged by itself', async () => {
    expect(await outcomeOf('src/late.ts', 'while (count !== last) count -= 1')).toMatchObject({
      kind: 'killed',
      isTimeout: true,
    })
    expect(await outcomeOf('src/late.ts', 'return ageMs >= 10')).toMatchObject({ kind: 'survived' })
  })

  test('a script of Redis is judged by the tests that reach its name', async () => {
    expect(await outcomeOf(script, '')).toMatchObject({ kind: 'killed' })
    expect(await outcomeOf(script, `return redis.call('DECR', KEYS[1])`)).toMatchObject({
      kind: 'survived',
    })
  })
})

test('npm run mutants refuses a file that is in no room', async () => {
  const command = join(import.meta.dirname, 'mutants.ts')
  const answer = await new Promise<unknown>((resolve) => {
    execFile(process.execPath, [command, '--only', 'src/main.ts'], (error, _out, err) =>
      resolve({ code: error?.code, err }),
    )
  })
  expect(answer).toEqual({
    code: 2,
    err: 'mutants: --only src/main.ts: no mutant is there; see test/mutants/rooms.ts\n',
  })
})

import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { readInputs, seedsFolder } from './engine/corpus.ts'
import { minimise } from './engine/minimise.ts'
import { runTarget, type TargetReport } from './engine/run-target.ts'
import { fuzz as planted } from './planted-defect.ts'
import { targets } from './targets.ts'

const folder = mkdtempSync(join(tmpdir(), 'tocsin-fuzz-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** So many findings are waited for. */
function run(
  name: string,
  { enough, hangMs, seeds = [] }: { enough: number; hangMs: number; seeds?: string[] },
): Promise<TargetReport> {
  const module = join(import.meta.dirname, `${name}.ts`)
  const own = join(folder, name)
  mkdirSync(join(own, 'seeds'), { recursive: true })
  for (const seed of seeds) writeFileSync(join(own, 'seeds', seed), seed)
  return runTarget({
    target: name,
    module,
    forMs: 25_000,
    seed: 7,
    seeds: join(own, 'seeds'),
    grown: join(own, 'grown'),
    findings: join(own, 'findings'),
    watched: [module],
    hangMs,
    enough,
  })
}

describe('the guided run', { timeout: 90_000 }, () => {
  test('finds a defect behind four bytes, each behind the one before, and keeps no byte too many', async () => {
    const { findings, covered, corpus } = await run('planted-defect', { enough: 1, hangMs: 10_000 })
    expect(findings.map(({ kind }) => kind)).toEqual(['throws'])
    expect(findings[0]!.message).toContain('the planted defect')
    const input = readFileSync(findings[0]!.file)
    expect(input.toString('hex')).toBe('b517ee42')
    expect(() => planted(input)).toThrow('the planted defect')
    expect(corpus).toBeGreaterThan(3)
    expect(covered).toBeGreaterThan(3)
  })

  test('finds what hangs and what ends the process, and goes on behind it', async () => {
    const { findings } = await run('planted-deaths', {
      enough: 2,
      hangMs: 3_000,
      seeds: ['aaa', 'haa', 'eaa'],
    })
    const found = findings.map(({ kind, file }) => `${kind} ${readFileSync(file, 'latin1')}`)
    expect(new Set(found)).toContain('crashes e')
    expect(findings.find(({ kind }) => kind === 'crashes')!.message).toContain('ends with 7')
    expect(new Set(found)).toContain('hangs h')
  })

  test('leaves no process behind that hangs when it is killed itself', async () => {
    const own = join(folder, 'killed')
    mkdirSync(join(own, 'seeds'), { recursive: true })
    writeFileSync(join(own, 'seeds', 'hang'), 'h')
    const at = (file: string): string => join(import.meta.dirname, file)
    const [current, engine] = [join(own, 'current'), at('engine/worker.ts')]
    const places = { seeds: join(own, 'seeds'), grown: join(own, 'grown'), findings: own, current }
    const module = at('planted-deaths.ts')
    const given = { ...places, target: 'killed', module, watched: [], deadly: [], seed: 1 }
    const script = `
      const options = { ...${JSON.stringify(given)}, untilMs: Date.now() + 60_000, starter: process.pid }
      const args = ['--no-warnings', ${JSON.stringify(engine)}, JSON.stringify(options)]
      const stdio = ['ignore', 'inherit', 'ignore', 'ipc']
      require('node:child_process').spawn(process.execPath, args, { stdio })`
    const starter = spawn(process.execPath, ['-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let isOver = false // once nobody holds its output any more
    starter.stdout.resume().on('close', () => (isOver = true))
    const isHanging = (): boolean => existsSync(current) && readFileSync(current).includes('h')
    await expect.poll(isHanging, { timeout: 30_000 }).toBe(true)
    starter.kill('SIGKILL')
    await expect.poll(() => isOver, { timeout: 30_000 }).toBe(true)
  })

  test('a finding is made as short as it can be', async () => {
    const needle = async (input: Uint8Array): Promise<boolean> =>
      input.includes(7) && input.includes(9)
    const found = await minimise(Uint8Array.from([1, 2, 7, 3, 4, 5, 9, 6]), needle, 1000)
    expect([...found]).toEqual([7, 9])
  })
})

describe.each(Object.entries(targets))('the target %s', (target, { fuzz }) => {
  const inputs = readInputs(join(seedsFolder, target))

  test('has a corpus, and every input of it is well', async () => {
    expect(inputs.length).toBeGreaterThan(2)
    for (const { input } of inputs) await fuzz(input)
  })
})

describe('npm run fuzz', { timeout: 90_000 }, () => {
  const fuzz = (...args: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      const file = join(import.meta.dirname, 'fuzz.ts')
      execFile(process.execPath, [file, ...args], (error, out, err) =>
        resolve({ code: error ? Number(error.code) : 0, out, err }),
      )
    })

  test('says what each target came to', async () => {
    const { code, out } = await fuzz(
      ...'--for 1s --target matcher --seed 3 --grown'.split(' '),
      join(folder, 'grown'),
    )
    expect(out).toMatch(/^matcher +\d+ executions, \d+\/s, corpus \d+, \d+ blocks, 0 findings$/m)
    expect(code).toBe(0)
  })

  test('refuses a target that there is not', async () => {
    expect(await fuzz('--target', 'nothing')).toMatchObject({
      code: 2,
      err: expect.stringContaining(
        '--target nothing: there is none; write one of addresses, ',
      ) as string,
    })
  })

  test('runs one input again', async () => {
    const input = join(seedsFolder, 'matcher/pattern')
    const { code, out } = await fuzz('--target', 'matcher', '--input', input)
    expect({ code, out }).toEqual({ code: 0, out: 'nothing is wrong with this input\n' })
  })
})

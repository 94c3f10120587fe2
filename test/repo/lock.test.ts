import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'tocsin-lock-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Entry = Record<string, unknown>

interface Files {
  wanted: Record<string, Record<string, string | boolean>>
  lock: { lockfileVersion: number; packages: Record<string, Entry> }
}

let files: Files

beforeEach(() => {
  const read = (file: string): unknown => JSON.parse(readFileSync(join(root, file), 'utf8'))
  files = { wanted: read('package.json'), lock: read('package-lock.json') } as Files
})

/** What the check says of the two files; nothing where it accepts them. */
function saidOf({ wanted, lock }: Files): string[] {
  writeFileSync(join(folder, 'package.json'), JSON.stringify(wanted))
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock))
  const script = join(root, '.ci/check-lock.mjs')
  const { status, stderr } = spawnSync(process.execPath, [script, folder], { encoding: 'utf8' })
  const lines = stderr.split('\n').filter((line) => line !== '')
  expect(status).toBe(lines.length === 0 ? 0 : 1)
  return lines
}

function entry(name: string): Entry {
  return files.lock.packages[`node_modules/${name}`]!
}

function resolveAll(address: (name: string) => string): void {
  for (const [place, held] of Object.entries(files.lock.packages)) {
    if (place !== '') held['resolved'] = address(place)
  }
}

test('the lock file of this version is accepted', () => {
  expect(saidOf(files)).toEqual([])
})

test('one that names a registry is accepted, as npm writes it by default', () => {
  resolveAll((place) => `https://registry.example/${place}.tgz`)
  expect(saidOf(files)).toEqual([])
})

const zod = 'package-lock.json node_modules/zod'
const strayed = `${zod}: does not come from a registry over https`
const inexact = 'package.json devDependencies.zod: not an exact version'

const mistakes: [what: string, make: () => unknown, said: string][] = [
  ['without a hash', () => delete entry('zod')['integrity'], `${zod}: no sha512 integrity`],
  ['with a weak hash', () => set({ integrity: 'sha1-2jmj7' }), `${zod}: no sha512 integrity`],
  ['over http', () => set({ resolved: 'http://registry.example/zod.tgz' }), strayed],
  ['from git', () => set({ resolved: 'git+https://code.example/zod.git' }), strayed],
  ['from a folder', () => set({ resolved: 'file:../zod' }), strayed],
  ['from nowhere', () => set({ resolved: '' }), strayed],
  ['that is a link', () => set({ resolved: 'packages/zod', link: true }), strayed],
  [
    'from another host than the others',
    () => {
      resolveAll((place) => `https://registry.example/${place}.tgz`)
      set({ resolved: 'https://elsewhere.example/zod.tgz' })
    },
    `${zod}: comes from another host than the others`,
  ],
  [
    'that alone names where it comes from',
    () => {
      for (const held of Object.values(files.lock.packages)) delete held['resolved']
      set({ resolved: 'https://elsewhere.example/zod.tgz' })
    },
    `${zod}: names where it comes from and others do not`,
  ],
  [
    'with an install script that nobody has judged',
    () => set({ hasInstallScript: true }),
    `${zod}: has an install script`,
  ],
  [
    'whose judged script is no longer there',
    () => (files.wanted['allowScripts']!['left-pad'] = true),
    'package.json allowScripts.left-pad: the lock has no such install script',
  ],
  ['of another version than was asked for', () => set({ version: '4.0.1' }), 'installs another'],
  [
    'that is older than package.json says',
    () => (files.wanted['devDependencies']!['vitest'] = '1.0.0'),
    'package.json devDependencies.vitest: the lock has another version',
  ],
  ...['^4.0.0', '4', '*', 'latest', 'npm:zod@4.0.0', '>=1.0.0 <2.0.0'].map(
    (version): (typeof mistakes)[number] => [
      `asked for as ${version}`,
      () => {
        files.wanted['devDependencies']!['zod'] = version
        files.lock.packages['']!['devDependencies'] = files.wanted['devDependencies']
      },
      inexact,
    ],
  ),
]

function set(given: Entry): void {
  Object.assign(entry('zod'), given)
}

test.each(mistakes)('a package %s is refused', (_what, make, said) => {
  make()
  expect(saidOf(files)).toEqual([expect.stringContaining(said)])
})

test('a lock of another form, or none, is refused', () => {
  files.lock.lockfileVersion = 1
  expect(saidOf(files)).toEqual([
    'check-lock: package-lock.json: not of version 3 with its packages; write it anew with npm 10 or later',
  ])
  rmSync(join(folder, 'package-lock.json'))
  const script = join(root, '.ci/check-lock.mjs')
  const { stderr } = spawnSync(process.execPath, [script, folder], { encoding: 'utf8' })
  expect(stderr).toBe(
    'check-lock: package-lock.json: cannot be read as JSON; run npm install, or restore it\n',
  )
})

test('npm run check reads the lock before it installs anything', () => {
  expect(files.wanted['scripts']!['precheck']).toMatch(/^node \.ci\/check-lock\.mjs && /)
})

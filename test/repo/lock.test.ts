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

test.each([
  ['without a hash', undefined],
  ['with a weak hash', 'sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk='],
])('a package %s is refused', (_which, integrity) => {
  entry('zod')['integrity'] = integrity
  expect(saidOf(files)).toEqual([
    'check-lock: package-lock.json node_modules/zod: no sha512 integrity; remove the entry and run npm install',
  ])
})

test.each([
  'http://registry.example/zod.tgz',
  'git+ssh://git@code.example/zod.git#0123',
  'git+https://code.example/zod.git',
  'file:../zod',
  '../zod',
  '',
])('a package from %j is refused', (resolved) => {
  entry('zod')['resolved'] = resolved
  expect(saidOf(files)).toEqual([
    'check-lock: package-lock.json node_modules/zod: does not come from a registry over https; depend on a version',
  ])
})

test('a link to a folder is refused', () => {
  files.lock.packages['node_modules/local'] = { resolved: 'packages/local', link: true }
  expect(saidOf(files).join()).toContain('node_modules/local: does not come from a registry')
})

test('a package from another host than the others is refused', () => {
  resolveAll((place) => `https://registry.example/${place}.tgz`)
  entry('zod')['resolved'] = 'https://elsewhere.example/zod.tgz'
  expect(saidOf(files)).toEqual([
    'check-lock: package-lock.json node_modules/zod: comes from another host than the others; use one registry',
  ])
})

test('a package that alone names where it comes from is refused', () => {
  for (const held of Object.values(files.lock.packages)) delete held['resolved']
  entry('zod')['resolved'] = 'https://elsewhere.example/zod.tgz'
  expect(saidOf(files)).toEqual([
    'check-lock: package-lock.json node_modules/zod: names where it comes from and others do not; remove its "resolved" and run npm install',
  ])
})

test('an install script that nobody has judged is refused, a nested one too', () => {
  entry('zod')['hasInstallScript'] = true
  files.lock.packages['node_modules/zod/node_modules/@a/b'] = {
    version: '1.0.0',
    integrity: 'sha512-AAAA',
    hasInstallScript: true,
  }
  expect(saidOf(files)).toEqual(
    ['node_modules/zod', 'node_modules/zod/node_modules/@a/b'].map(
      (place) =>
        `check-lock: package-lock.json ${place}: has an install script; say in allowScripts of package.json whether it may run`,
    ),
  )
})

test('a judgement on a script that is no longer there is refused', () => {
  files.wanted['allowScripts']!['left-pad'] = true
  expect(saidOf(files)).toEqual([
    'check-lock: package.json allowScripts.left-pad: the lock has no such install script; remove the line',
  ])
})

test.each(['^4.0.0', '~4.0.0', '4', '*', 'latest', 'npm:zod@4.0.0', '>=1.0.0 <2.0.0'])(
  'the version %j is refused',
  (version) => {
    files.wanted['dependencies']!['zod'] = version
    files.lock.packages['']!['dependencies'] = files.wanted['dependencies']
    expect(saidOf(files)).toEqual([
      `check-lock: package.json dependencies.zod: not an exact version; write ${String(entry('zod')['version'])}`,
    ])
  },
)

test('a lock that is older than package.json is refused', () => {
  files.wanted['devDependencies']!['vitest'] = '1.0.0'
  expect(saidOf(files)).toEqual([
    'check-lock: package.json devDependencies.vitest: the lock has another version; run npm install',
  ])
})

test('a lock that installs another version than it was asked for is refused', () => {
  entry('zod')['version'] = '4.0.1'
  expect(saidOf(files)).toEqual([
    'check-lock: package.json dependencies.zod: the lock installs another; run npm install',
  ])
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

/** What `npm run build` makes: the program, the licences in it, and the bill of its materials. */
import { execFileSync, spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { homedir, hostname, tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { loadScript } from '../../src/redis/scripts.ts'
import { buildProgram, type BuiltProgram } from '../support/built-program.ts'
import { connectTo } from '../support/ledger.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'

const root = join(import.meta.dirname, '../..')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string
  scripts: Record<string, string>
  devDependencies: Record<string, string>
}
const scripts = readdirSync(join(root, 'src/redis/scripts'), {
  recursive: true,
  encoding: 'utf8',
}).filter((file) => file.endsWith('.lua') && !file.startsWith('lib'))
let built: BuiltProgram
let redis: TestRedis | undefined

beforeAll(async () => {
  built = buildProgram()
  redis = await startRedis()
})

afterAll(async () => {
  built.remove()
  await redis?.stop()
})

test('the built command runs', () => {
  const version = execFileSync(process.execPath, [built.main, '--version'])
  expect(String(version).trim()).toBe(manifest.version)
})

test('the built command says at once that its Node is too old', () => {
  const file = join(built.folder, 'package.json')
  const text = readFileSync(file, 'utf8')
  onTestFinished(() => writeFileSync(file, text))
  writeFileSync(file, text.replace('>=22.19', '>=99.1'))
  const { status, stderr } = spawnSync(process.execPath, [built.main], { encoding: 'utf8' })
  expect(status).toBe(2)
  expect(stderr).toBe(
    `tocsin needs Node 99.1 or newer, and this is Node ${process.versions.node} (${process.execPath})\n`,
  )
})

test('every Lua script is whole and accepted by Redis', async () => {
  const client = connectTo(redis!.url)
  for (const file of scripts) {
    const { text, sha } = loadScript(basename(file, '.lua'))
    expect(text).not.toMatch(/^-- @include/m)
    expect(await client.script('LOAD', text)).toBe(sha)
  }
  client.disconnect()
})

test.each(['redis/scripts', 'page/views', 'page/static'])(
  'the build has every file of %s',
  (folder) => {
    const filesBelow = (top: string): string[] =>
      readdirSync(join(top, folder), { recursive: true, encoding: 'utf8' }).toSorted()
    expect(filesBelow(join(built.folder, 'dist'))).toEqual(filesBelow(join(root, 'src')))
  },
)

/** What a file of the bundle loads at once, itself with it: names of files. */
function loadedWith(file: string, known = new Set<string>()): Set<string> {
  if (known.has(file)) return known
  known.add(file)
  const imports = readBuilt(file).matchAll(
    /^(?:import|export)\b[^;]*?["']\.\/([^"']+\.js)["'];?$/gm,
  )
  for (const [, next = ''] of imports) loadedWith(next, known)
  return known
}

function readBuilt(file: string): string {
  return readFileSync(join(built.folder, 'dist', file), 'utf8')
}

/** Packages with a piece in these files, by the comments that name where it comes from. */
function packagesIn(files: Iterable<string>): Set<string> {
  const texts = [...files].map((file) => readBuilt(file)).join('\n')
  const places = texts.matchAll(/^\s*\/\/.*\bnode_modules\/((?:@[^/]+\/)?[^/\s]+)\//gm)
  return new Set([...places].map(([, name = '']) => name))
}

function chunks(): string[] {
  return readdirSync(join(built.folder, 'dist')).filter((file) => file.endsWith('.js'))
}

function chunkOf(room: string): string {
  const [found, ...others] = chunks().filter((file) =>
    readBuilt(file).includes(`\n// src/${room}\n`),
  )
  expect([room, found, others]).toEqual([room, expect.any(String), []])
  return found!
}

const connecting = ['bullmq', 'fastify', 'ioredis', 'nodemailer', 'smtp-server', 'undici']

test.each([
  ['cli/program.ts', []],
  ['cli/config/check.ts', []],
  ['cli/config/schema.ts', []],
  ['cli/ledger/items.ts', []],
  ['cli/ledger/status.ts', []],
  ['daemon/daemon.ts', ['bullmq', 'fastify', 'ioredis', 'undici']],
])('%s brings no package that connects, but for %j', (room, expected) => {
  const brought = packagesIn(loadedWith(chunkOf(room)))
  expect(connecting.filter((name) => brought.has(name))).toEqual(expected)
})

test('what runs before the Node is looked at runs on any', () => {
  for (const file of [...loadedWith('main.js'), ...loadedWith(chunkOf('cli/version.ts'))])
    expect(readBuilt(file)).not.toContain('import.meta.dirname')
})

test('the build names the licence of every package in it, and its text', () => {
  const parts = readBuilt('licences.txt')
    .split(/^## (?=\S+@\d\S* \()/m)
    .slice(1)
  const named = new Set(parts.map((part) => /^(\S+)@/.exec(part)?.[1]))
  const bundled = packagesIn(chunks())
  expect(bundled.size).toBeGreaterThan(50)
  expect([...bundled].filter((name) => !named.has(name))).toEqual([])
  expect(parts.filter((part) => !/copyright/i.test(part) || part.length < 600)).toEqual([])
})

const component = z.object({
  'bom-ref': z.string(),
  type: z.literal('library'),
  name: z.string(),
  version: z.string(),
  scope: z.string(),
  purl: z.string().startsWith('pkg:npm/'),
  hashes: z.array(z.object({ alg: z.literal('SHA-512'), content: z.hex().length(128) })).length(1),
  licenses: z
    .array(
      z.union([
        z.object({ license: z.object({ id: z.string() }) }),
        z.object({ expression: z.string() }),
      ]),
    )
    .min(1),
})
/** What of CycloneDX 1.5 is promised. */
const billOfMaterials = z.object({
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.literal('1.5'),
  metadata: z.object({
    component: z.object({ type: z.literal('application'), name: z.string(), version: z.string() }),
  }),
  components: z.array(component),
  dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
})

function readBill(): z.output<typeof billOfMaterials> {
  return billOfMaterials.parse(JSON.parse(readBuilt('sbom.cdx.json')))
}

/** Of a build: its files, each with a digest of what is in it. */
function digests({ folder }: BuiltProgram): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).isFile())
  return new Map(files.map((file) => [relative(folder, file), hash('sha256', readFileSync(file))]))
}

/** Packages with their version, as the licences name them. */
function shipped(): string[] {
  const heads = readBuilt('licences.txt').matchAll(/^## (\S+@\d\S*) \(/gm)
  return [...heads].map(([, ref = '']) => ref)
}

test('the bill lists every package of which the bundle holds a piece once, and no other', () => {
  const listed = readBill().components.map(({ name, version }) => `${name}@${version}`)
  expect(listed.toSorted()).toEqual(shipped().toSorted())
  expect(new Set(readBill().components.map(({ scope }) => scope))).toEqual(new Set(['required']))
})

test('every edge of the bill leads from and to what it lists, from the top to what package.json asks for', () => {
  const { devDependencies } = manifest
  const asked = Object.entries(devDependencies).map(([one, at]) => `${one}@${at}`)
  const bill = readBill()
  const known = new Set(bill.components.map((one) => one['bom-ref']))
  const { name, version } = bill.metadata.component
  known.add(`${name}@${version}`)
  const edges = new Map(bill.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]))
  const fromTop = edges.get(`${name}@${version}`) ?? []
  expect(fromTop.toSorted()).toEqual(asked.filter((ref) => known.has(ref)).toSorted())
  expect(fromTop).toContain(`bullmq@${devDependencies['bullmq']}`)
  const named = bill.dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn])
  expect(named.filter((ref) => !known.has(ref))).toEqual([])
})

test('the bill says nothing of the machine, its registry or its user', () => {
  const text = readBuilt('sbom.cdx.json')
  const own = [root, homedir(), tmpdir(), hostname()].filter(({ length }) => length > 3)
  expect(own.filter((name) => text.includes(name))).toEqual([])
  const hosts = [...text.matchAll(/https?:\/\/([^/"]+)/g)].map(([, host]) => host)
  expect(new Set(hosts)).toEqual(new Set(['cyclonedx.org']))
})

test('a second build, in another folder, is the same to the byte', () => {
  const again = buildProgram()
  onTestFinished(() => again.remove())
  expect(digests(again)).toEqual(digests(built))
})

test('nothing is installed with the package', () => {
  const kinds = ['dependencies', 'optionalDependencies', 'peerDependencies']
  expect(kinds.filter((kind) => kind in manifest)).toEqual([])
})

test('a build writes the bill beside the code, and so does the image', () => {
  expect(manifest.scripts['build']).toBe('node .ci/bundle.mjs && node .ci/sbom.mjs')
  expect(readFileSync(join(root, 'deploy/Dockerfile'), 'utf8')).toContain(
    'RUN node .ci/bundle.mjs && node .ci/sbom.mjs\n',
  )
})

test.each(scripts)('%s says what it does, its keys, its arguments and what it returns', (file) => {
  const text = readFileSync(join(root, 'src/redis/scripts', file), 'utf8')
  const header = text
    .split('\n')
    .filter((line) => line.startsWith('-- '))
    .join('\n')
  expect(header).toMatch(/^-- KEYS/m)
  expect(header).toMatch(/^-- Returns/m)
  expect(text.indexOf('#!lua')).toBeLessThanOrEqual(0)
})

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { homedir, hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

const root = join(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'tocsin-sbom-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

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
const bill = z.object({
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.literal('1.5'),
  metadata: z.object({
    component: z.object({ type: z.literal('application'), name: z.string(), version: z.string() }),
  }),
  components: z.array(component),
  dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
})

let text: string
let written: z.output<typeof bill>

function write(): string {
  for (const step of ['bundle', 'sbom']) {
    execFileSync(process.execPath, [`.ci/${step}.mjs`, folder], { cwd: root })
  }
  return readFileSync(join(folder, 'sbom.cdx.json'), 'utf8')
}

/** Of a build: names of files and what is in them. */
function readAll(): [string, string][] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => [name, readFileSync(join(folder, name), 'utf8')])
}

beforeAll(() => {
  text = write()
  written = bill.parse(JSON.parse(text))
})

test('it lists every package of which the bundle holds a piece once, and no other', () => {
  const licences = readFileSync(join(folder, 'licences.txt'), 'utf8')
  const shipped = [...licences.matchAll(/^## (\S+@\d\S*) \(/gm)].map(([, ref = '']) => ref)
  const listed = written.components.map(({ name, version }) => `${name}@${version}`)
  expect(listed.toSorted()).toEqual(shipped.toSorted())
  expect(new Set(written.components.map(({ scope }) => scope))).toEqual(new Set(['required']))
})

test('every edge leads from and to what it lists, from the top to what package.json asks for', () => {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    devDependencies: Record<string, string>
  }
  const asked = Object.entries(devDependencies).map(([one, at]) => `${one}@${at}`)
  const known = new Set(written.components.map((one) => one['bom-ref']))
  const { name, version } = written.metadata.component
  known.add(`${name}@${version}`)
  const edges = new Map(written.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]))
  const fromTop = edges.get(`${name}@${version}`) ?? []
  expect(fromTop.toSorted()).toEqual(asked.filter((ref) => known.has(ref)).toSorted())
  expect(fromTop).toContain(`bullmq@${devDependencies['bullmq']}`)
  const named = written.dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn])
  expect(named.filter((ref) => !known.has(ref))).toEqual([])
})

test('it says nothing of the machine, its registry or its user, and a second build is the same to the byte', () => {
  const before = readAll()
  const own = [root, homedir(), tmpdir(), hostname()].filter(({ length }) => length > 3)
  expect(own.filter((name) => text.includes(name))).toEqual([])
  const hosts = [...text.matchAll(/https?:\/\/([^/"]+)/g)].map(([, host]) => host)
  expect(new Set(hosts)).toEqual(new Set(['cyclonedx.org']))
  write()
  expect(readAll()).toEqual(before)
})

test('nothing is installed with the package', () => {
  const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as Record<string, unknown>
  expect({ dependencies, optionalDependencies, peerDependencies }).toEqual({})
})

test('a build writes it beside the code, and so does the image', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  expect(scripts['build']).toBe('node .ci/bundle.mjs && node .ci/sbom.mjs')
  expect(readFileSync(join(root, 'deploy/Dockerfile'), 'utf8')).toContain(
    'RUN node .ci/bundle.mjs && node .ci/sbom.mjs\n',
  )
})

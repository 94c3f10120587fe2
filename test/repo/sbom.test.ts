import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
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

interface Locked {
  version: string
  dev?: boolean
  devOptional?: boolean
}

let text: string
let written: z.output<typeof bill>

function write(): string {
  execFileSync(process.execPath, ['.ci/sbom.mjs', folder], { cwd: root })
  return readFileSync(join(folder, 'sbom.cdx.json'), 'utf8')
}

beforeAll(() => {
  text = write()
  written = bill.parse(JSON.parse(text))
})

test('it lists every production package of the lock once, and no other', () => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>
  }
  const shipped = Object.entries(packages)
    .filter(([place, { dev, devOptional }]) => place !== '' && !dev && !devOptional)
    .map(([place, { version }]) => `${place.split('node_modules/').at(-1)}@${version}`)
  const listed = written.components.map(({ name, version }) => `${name}@${version}`)
  expect(listed.toSorted()).toEqual([...new Set(shipped)].toSorted())
})

test('every edge leads from and to what it lists, from the top to what package.json asks for', () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const asked = Object.keys(dependencies)
  const known = new Set(written.components.map((one) => one['bom-ref']))
  const { name, version } = written.metadata.component
  known.add(`${name}@${version}`)
  const edges = new Map(written.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]))
  expect(edges.get(`${name}@${version}`)).toHaveLength(asked.length)
  const named = written.dependencies.flatMap(({ ref, dependsOn }) => [ref, ...dependsOn])
  expect(named.filter((ref) => !known.has(ref))).toEqual([])
})

test('it says nothing of the machine, its registry or its user, and is the same each time', () => {
  const own = [root, homedir(), tmpdir(), hostname()].filter(({ length }) => length > 3)
  expect(own.filter((name) => text.includes(name))).toEqual([])
  const hosts = [...text.matchAll(/https?:\/\/([^/"]+)/g)].map(([, host]) => host)
  expect(new Set(hosts)).toEqual(new Set(['cyclonedx.org']))
  expect(write()).toBe(text)
})

test('a build writes it beside the code, and so does the image', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  expect(scripts['build']).toContain('node .ci/sbom.mjs')
  expect(readFileSync(join(root, 'deploy/Dockerfile'), 'utf8')).toContain('node .ci/sbom.mjs')
})

// Writes what a release is made of, in CycloneDX: every production package of the lock file with its
// hash and licence. The folder is dist unless named. The same lock gives the same bytes, on any machine
// and from npm 10 as from npm 11.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'

const target = process.argv[2] ?? 'dist'
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application']

// from the lock alone: what is installed here may be less, and says where it came from
const { status, stdout } = spawnSync(npm, [...args, '--package-lock-only', '--loglevel=error'], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
  maxBuffer: 64 * 1024 * 1024,
})
if (status !== 0) {
  process.stderr.write('sbom: npm sbom failed; it needs npm 10 or later and package-lock.json\n')
  process.exit(1)
}

const { name, version, packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const root = `${name}@${version}`
// not by --omit=dev, under which npm 11 leaves out what a package of development needs as well
const shipped = new Set(
  Object.entries(packages)
    .filter(([place, { dev, devOptional }]) => place !== '' && !dev && !devOptional)
    .map(
      ([place, locked]) =>
        `${locked.name ?? place.split('node_modules/').at(-1)}@${locked.version}`,
    ),
)
const own = new Set(
  Object.keys(packages[''].dependencies).map((asked) => {
    return `${asked}@${packages[`node_modules/${asked}`].version}`
  }),
)

const { serialNumber: _drawn, ...bill } = JSON.parse(stdout)
const { timestamp: _now, tools: _npm, ...metadata } = bill.metadata
// npm calls the root after its folder
bill.metadata = { ...metadata, component: { ...metadata.component, name, version } }
bill.components = bill.components.filter((component) => shipped.has(component['bom-ref']))
bill.dependencies = bill.dependencies
  .filter(({ ref }) => ref === root || shipped.has(ref))
  .map(({ ref, dependsOn }) => {
    const kept = ref === root ? own : shipped
    return { ref, dependsOn: dependsOn.filter((needed) => kept.has(needed)) }
  })
for (const component of [bill.metadata.component, ...bill.components]) {
  // the place in a registry, which may be a mirror of somebody's own; the purl names the package
  component.externalReferences = component.externalReferences.filter(
    ({ type }) => type !== 'distribution',
  )
  // npm 10 writes it, npm 11 does not
  component.properties = component.properties?.filter(
    ({ name: of }) => of !== 'cdx:npm:package:path',
  )
}

mkdirSync(target, { recursive: true })
writeFileSync(`${target}/sbom.cdx.json`, `${JSON.stringify(bill, null, 2)}\n`)

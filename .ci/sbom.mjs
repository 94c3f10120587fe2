// Writes what a release is made of, in CycloneDX: every package of which the bundle holds a piece, with its hash
// and licence from the lock. The folder, of a bundle that is there, is dist unless named. The same lock gives the
// same bytes, on any machine and from npm 10 as from npm 11.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

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
const licences = readFileSync(`${target}/licences.txt`, 'utf8')
const shipped = new Set([...licences.matchAll(/^## (\S+@\d\S*) \(/gm)].map(([, ref]) => ref))
const asked = Object.keys(packages[''].devDependencies)
const own = new Set(
  asked
    .map((one) => `${one}@${packages[`node_modules/${one}`].version}`)
    .filter((ref) => shipped.has(ref)),
)

const { serialNumber: _drawn, ...bill } = JSON.parse(stdout)
const { timestamp: _now, tools: _npm, ...metadata } = bill.metadata
// npm calls the root after its folder
bill.metadata = {
  ...metadata,
  lifecycles: [{ phase: 'build' }],
  component: { ...metadata.component, name, version },
}
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
  // its place in node_modules, and that a checkout needs it for development alone
  delete component.properties
  component.scope = 'required'
}

writeFileSync(`${target}/sbom.cdx.json`, `${JSON.stringify(bill, null, 2)}\n`)

// Brings a fresh clone to the point where everything runs: npm packages as the lock says, the pinned
// Node among them, and a Redis binary. Plain JavaScript: it runs on whatever Node the machine has.
import { createHash } from 'node:crypto'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'

const stampFile = 'node_modules/.tocsin-set-up'

function fail(message) {
  process.stderr.write(`set-up: ${message}\n`)
  process.exit(1)
}

function succeeds(command, args) {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}

function lockDigest() {
  const files = ['package.json', 'package-lock.json'].filter((file) => existsSync(file))
  const hash = createHash('sha256')
  for (const file of files) hash.update(readFileSync(file))
  return hash.digest('hex')
}

function packagesAreCurrent(digest) {
  return (
    existsSync('node_modules/.bin/node') &&
    existsSync(stampFile) &&
    readFileSync(stampFile, 'utf8') === digest
  )
}

function installPackages() {
  if (packagesAreCurrent(lockDigest())) return
  process.stderr.write('set-up: installing npm packages (the first time takes about a minute)\n')
  const args = ['install', '--no-audit', '--no-fund', '--loglevel=error']
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  const done = spawnSync(npm, args, { stdio: ['ignore', 2, 2] })
  if (done.status !== 0) fail('npm install failed; its own message is above')
  if (!succeeds('node_modules/.bin/node', ['--version'])) {
    fail('the pinned Node did not install; run: npm rebuild node --foreground-scripts')
  }
  mkdirSync('node_modules', { recursive: true })
  writeFileSync(stampFile, lockDigest())
}

// Debian's redis-tools carries the server's code under the name redis-check-rdb.
function hasRedis() {
  return ['redis-server', 'valkey-server', 'redis-check-rdb'].some((name) =>
    succeeds(name, ['--version']),
  )
}

const installers = [
  ['apt-get', 'apt-get update && apt-get install -y --no-install-recommends redis-tools'],
  ['dnf', 'dnf install -y redis'],
  ['apk', 'apk add redis'],
  ['brew', 'brew install redis'],
]

function installRedis() {
  if (hasRedis()) return
  const known = installers.find(([name]) => succeeds(name, ['--version']))
  const line = known?.[1] ?? 'install Redis 7 or Valkey with your package manager'
  const isRoot = process.getuid?.() === 0
  if (!known || (!isRoot && known[0] !== 'brew')) {
    fail(
      `no redis-server was found; run this once, then try again:\n  ${isRoot ? '' : 'sudo sh -c '}'${line}'`,
    )
  }
  process.stderr.write(`set-up: installing Redis (${known[0]})\n`)
  execFileSync('sh', ['-c', line], { stdio: ['ignore', 'ignore', 2] })
  if (!hasRedis()) fail(`Redis is still missing after: ${line}`)
}

installPackages()
installRedis()

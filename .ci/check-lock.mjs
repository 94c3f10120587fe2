// Refuses a lock file under which an install could bring something else than was looked at: a package
// without its hash, from elsewhere than one https registry, or with an install script that
// package.json does not judge. Plain JavaScript: it runs before anything is installed.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = process.argv[2] ?? '.'
const wanted = readJson('package.json')
const lock = readJson('package-lock.json')
const packages = Object.entries(lock.packages ?? {}).filter(([place]) => place !== '')

function readJson(file) {
  try {
    return JSON.parse(readFileSync(join(folder, file), 'utf8'))
  } catch {
    fail([`${file}: cannot be read as JSON; run npm install, or restore it`])
  }
}

function fail(mistakes) {
  for (const mistake of mistakes) process.stderr.write(`check-lock: ${mistake}\n`)
  process.exit(1)
}

const inLock = (place) => `package-lock.json ${place}`

function formMistakes() {
  if (lock.lockfileVersion === 3 && packages.length > 0) return []
  return [
    `package-lock.json: not of version 3 with its packages; write it anew with npm 10 or later`,
  ]
}

/** A link has no content of its own to hash; where it leads is refused below. */
function integrityMistakes() {
  return packages
    .filter(([, { link, integrity = '' }]) => !link && !integrity.startsWith('sha512-'))
    .map(([place]) => `${inLock(place)}: no sha512 integrity; remove the entry and run npm install`)
}

/**
 * Written by npm of all, or with omit-lockfile-registry-resolved of none: then whatever still says where
 * it comes from comes from elsewhere.
 */
function sourceMistakes() {
  const areOmitted = packages.some(([, { resolved, link }]) => resolved === undefined && !link)
  const hosts = new Set()
  return packages.flatMap(([place, { resolved, link }]) => {
    if (resolved === undefined && !link) return []
    const url = URL.canParse(resolved) ? new URL(resolved) : undefined
    if (url?.protocol !== 'https:') {
      return [`${inLock(place)}: does not come from a registry over https; depend on a version`]
    }
    if (areOmitted) {
      return [
        `${inLock(place)}: names where it comes from and others do not; remove its "resolved" and run npm install`,
      ]
    }
    hosts.add(url.host)
    if (hosts.size === 1) return []
    hosts.delete(url.host)
    return [`${inLock(place)}: comes from another host than the others; use one registry`]
  })
}

function nameOf([place, { name }]) {
  return name ?? place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

function scriptMistakes() {
  const judged = new Set(Object.keys(wanted.allowScripts ?? {}))
  const withScript = packages.filter(([, { hasInstallScript }]) => hasInstallScript)
  const names = new Set(withScript.map(nameOf))
  const unjudged = withScript
    .filter((entry) => !judged.has(nameOf(entry)))
    .map(
      ([place]) =>
        `${inLock(place)}: has an install script; say in allowScripts of package.json whether it may run`,
    )
  const idle = [...judged]
    .filter((name) => !names.has(name))
    .map(
      (name) =>
        `package.json allowScripts.${name}: the lock has no such install script; remove the line`,
    )
  return [...unjudged, ...idle]
}

const kinds = ['dependencies', 'devDependencies', 'optionalDependencies']
const exact = /^\d+\.\d+\.\d+(-[\w.-]+)?$/

function versionMistakes() {
  const locked = lock.packages?.[''] ?? {}
  return kinds.flatMap((kind) => {
    const names = new Set([...Object.keys(wanted[kind] ?? {}), ...Object.keys(locked[kind] ?? {})])
    return [...names].flatMap((name) => versionMistake(kind, name, locked[kind]?.[name]))
  })
}

function versionMistake(kind, name, locked) {
  const version = wanted[kind]?.[name]
  const place = `package.json ${kind}.${name}`
  if (version !== locked) return [`${place}: the lock has another version; run npm install`]
  const installed = lock.packages?.[`node_modules/${name}`]?.version
  if (!exact.test(version)) return [`${place}: not an exact version; write ${installed ?? '1.2.3'}`]
  return installed === version ? [] : [`${place}: the lock installs another; run npm install`]
}

const mistakes = [
  ...formMistakes(),
  ...integrityMistakes(),
  ...sourceMistakes(),
  ...scriptMistakes(),
  ...versionMistakes(),
]
if (mistakes.length > 0) fail(mistakes)

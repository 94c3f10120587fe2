// Makes the program that runs without this checkout, in the folder dist unless another is named. It bundles our code
// with the packages that it needs, in the versions of the lock. It copies what is no code, and collects licences.
import { cpSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { build } from 'rolldown'

const target = process.argv[2] ?? 'dist'
const root = join(import.meta.dirname, '..')
const source = join(root, 'src')
const assets = ['redis/scripts', 'page/views', 'page/static']

/** All files of the bundle lie in one folder: what lies beside a module lies below that folder. */
const places = {
  name: 'places',
  transform(code, id) {
    if (!id.startsWith(source + sep)) return undefined
    const place = relative(source, id).replaceAll(sep, '/')
    return code
      .replaceAll('createRequire(import.meta.url)(', 'require(')
      .replaceAll('import.meta.url', `new URL('./${place}', import.meta.url).href`)
      .replaceAll('import.meta.dirname', `(import.meta.dirname + '/${dirname(place)}')`)
  },
}

const modules = {
  // An import of node:http as a module loads Node's own fetch, 13 MiB, and nothing uses it.
  http: `const http = process.getBuiltinModule('node:http')
    export default http
    export const { createServer } = http`,
  // Optional packages that Tocsin does without: none is loaded, whatever lies in folders above.
  absent: `throw new Error('not part of this build')`,
}
const absent = ['@valkey/valkey-glide', 'msgpackr-extract', 'pg', 'supports-color']

const ownModules = {
  name: 'own-modules',
  resolveId(name, _from, { kind }) {
    if (absent.includes(name)) return '\0absent'
    return /^(?:node:)?http$/.test(name) && kind === 'import-statement' ? '\0http' : undefined
  },
  load: (id) => (id.startsWith('\0') ? modules[id.slice(1)] : undefined),
}

const { output } = await build({
  input: join(source, 'main.ts'),
  cwd: root,
  platform: 'node',
  tsconfig: false,
  plugins: [places, ownModules],
  transform: { target: 'node22' },
  output: {
    dir: target,
    cleanDir: true,
    format: 'esm',
    comments: { legal: false, jsdoc: false, annotation: true },
  },
  // a package that is not found is a warning, and missed when it is needed
  onLog: (level, log, handle) => handle(level === 'warn' ? 'error' : level, log),
})
for (const asset of assets) cpSync(join(source, asset), join(target, asset), { recursive: true })

// Licences: of each package its texts, those of folders in it, and the notices in comments of what is bundled.

const noText = {
  'abstract-logging': `Copyright (c) James Sumners <james.sumners@gmail.com>

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation
the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and
to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of
the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO
THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS
IN THE SOFTWARE.`,
}

/** The folder of the package that a module is of; undefined: it is ours. */
function packageOf(module) {
  return /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(module)?.[0]
}

function foldersUpTo(top, folder) {
  return folder === top ? [top] : [...foldersUpTo(top, dirname(folder)), folder]
}

function licenceFiles(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /^(?:licen[cs]e|notice|copying)/i.test(entry.name))
    .map(({ name }) => readFileSync(join(folder, name), 'utf8').trim())
}

function noticesIn(module) {
  const comments = readFileSync(module, 'utf8').match(/\/\*[^]*?\*\/|(?:^[ \t]*\/\/.*\n)+/gm) ?? []
  return comments.filter((text) => /copyright|licensed under|license:/i.test(text))
}

function describeLicence([folder, ofPackage]) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const folders = new Set(ofPackage.flatMap((one) => foldersUpTo(folder, dirname(one))))
  const files = [...folders].flatMap(licenceFiles)
  const texts = [noText[name] ?? [], files, ofPackage.flatMap(noticesIn)].flat()
  if (texts.length === 0) throw new Error(`${folder}: no text of its licence; write it into noText`)
  return [`## ${name}@${version} (${license})`, ...new Set(texts)].join('\n\n')
}

const bundled = output
  .flatMap((piece) => (piece.type === 'chunk' ? piece.moduleIds : []))
  .filter((id) => packageOf(id) !== undefined)
const licences = [...Map.groupBy(bundled, packageOf)].map(describeLicence).toSorted()
writeFileSync(join(target, 'licences.txt'), `${licences.join('\n\n')}\n`)

// Completes a build after tsc: what runs but is not TypeScript. The folder is dist unless named.
import { cpSync, mkdirSync } from 'node:fs'

const target = process.argv[2] ?? 'dist'
const assets = ['redis/scripts', 'page/views', 'page/static']

for (const asset of assets) {
  mkdirSync(`${target}/${asset}`, { recursive: true })
  cpSync(`src/${asset}`, `${target}/${asset}`, { recursive: true })
}

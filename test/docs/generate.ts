/** Writes the generated parts of docs/ anew: `npm run docs`; with `--check` it only says which pages are stale. */
import { writeFileSync } from 'node:fs'
import { stalePages } from './pages.ts'

const stale = await stalePages()
if (process.argv.includes('--check')) {
  for (const { path } of stale) process.stderr.write(`${path} is stale: run npm run docs\n`)
  if (stale.length > 0) process.exitCode = 1
} else {
  for (const { path, file, fresh } of stale) {
    writeFileSync(file, fresh)
    process.stdout.write(`${path} is written anew\n`)
  }
}

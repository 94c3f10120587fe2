/**
 * `npm run gallery`: writes gallery/gallery.html, with `--config <file>` as the sinks of that file
 * send it. `--screenshots <folder>` takes the pictures of the
 * documentation in Chromium, `--variants <folder>` all of them: dark, inverted, on a phone, `--page
 * <folder>` each view of the page.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { galleryPage } from './page.ts'
import { takeDocsPictures, takePagePictures } from './page-pictures.ts'
import { takePictures } from './pictures.ts'

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'gallery' },
    screenshots: { type: 'string' },
    variants: { type: 'string' },
    page: { type: 'string' },
    config: { type: 'string' },
  },
})

mkdirSync(values.out, { recursive: true })
const file = join(values.out, 'gallery.html')
writeFileSync(file, await galleryPage({ path: values.config }))
process.stdout.write(`${file} is written; open it in a browser\n`)
if (values.screenshots !== undefined) {
  await take(values.screenshots, { isForDocs: true })
  say(await takeDocsPictures(values.screenshots))
}
if (values.page !== undefined) {
  mkdirSync(values.page, { recursive: true })
  say(await takePagePictures(values.page))
}
if (values.variants !== undefined) await take(values.variants, { isForDocs: false })

function say(paths: readonly string[]): void {
  for (const path of paths) process.stdout.write(`${path}\n`)
}

async function take(folder: string, options: { isForDocs: boolean }): Promise<void> {
  mkdirSync(folder, { recursive: true })
  for (const { name, picture } of await takePictures(options)) {
    writeFileSync(join(folder, name), picture)
    process.stdout.write(`${join(folder, name)}: ${Math.ceil(picture.length / 1000)} kB\n`)
  }
}

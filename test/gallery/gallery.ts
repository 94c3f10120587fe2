/**
 * `npm run gallery`: writes gallery/gallery.html, with `--config <file>` as the sinks of that file
 * send it. `--screenshots <folder>` takes the pictures of the documentation in Chromium.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { galleryPage } from './page.ts'
import { takePagePictures } from './page-pictures.ts'
import { takePictures } from './pictures.ts'

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: 'gallery' },
    screenshots: { type: 'string' },
    config: { type: 'string' },
  },
})

mkdirSync(values.out, { recursive: true })
const file = join(values.out, 'gallery.html')
writeFileSync(file, await galleryPage({ path: values.config }))
process.stdout.write(`${file} is written; open it in a browser\n`)
if (values.screenshots !== undefined) {
  mkdirSync(values.screenshots, { recursive: true })
  for (const { name, picture } of [...(await takePictures()), ...(await takePagePictures())]) {
    const path = join(values.screenshots, name)
    writeFileSync(path, picture)
    process.stdout.write(`${path}: ${Math.ceil(picture.length / 1000)} kB\n`)
  }
}

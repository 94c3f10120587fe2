/** Loaded before each test file where blocks note that they ran: writes down which, when the file is done. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect } from 'vitest'

const hits = new Set<string>()
Object.assign(globalThis, { tocsinHit: hits })

afterAll(() => {
  const { testPath = '' } = expect.getState()
  const name = testPath.replaceAll(/[^\w.-]/g, '_')
  const folder = process.env['TOCSIN_HITS'] ?? ''
  writeFileSync(join(folder, name), JSON.stringify({ testPath, hits: [...hits] }))
})

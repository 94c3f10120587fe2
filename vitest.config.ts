import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

// What tests start in processes of their own is compiled once, not at each start.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/tocsin-tests')

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/support/compile-once.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    maxWorkers: 3,
  },
})

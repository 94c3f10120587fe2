import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

// What tests start in processes of their own is compiled once, not at each start.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/tocsin-tests')

// Tests that need real seconds: seeded runs of the fault rig, kills, floods, frozen processes, measurements,
// and the long form of tests that draw many cases.
const faults = ['test/faults/**/*.test.ts']

const rest = { include: ['test/**/*.test.ts'], exclude: faults }

export default defineConfig({
  test: {
    globalSetup: 'test/support/compile-once.ts',
    // guards against hangs alone: no machine is so slow
    testTimeout: 300_000,
    hookTimeout: 300_000,
    maxWorkers: 3,
    setupFiles: 'test/support/leave-nothing.ts',
    // a second is not enough where a process has to start
    expect: { poll: { timeout: 120_000 } },
    projects: [
      // `npm test`: half of its time is waiting
      {
        extends: true,
        test: {
          name: 'quick',
          ...rest,
          // files of a worker share what they import: half of the time of the processor
          isolate: false,
          maxWorkers: 4,
        },
      },
      // `npm run test:faults`
      {
        extends: true,
        test: {
          name: 'faults',
          include: faults,
          env: { TOCSIN_LONG_RUNS: '1' },
        },
      },
    ],
  },
})

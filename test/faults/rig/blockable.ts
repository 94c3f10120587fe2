/** Loaded into each replica of the rig: SIGUSR2 blocks its event loop, as a page too large would. */
const ms = Number(process.env['TOCSIN_RIG_BLOCK_MS'] ?? 15_000)

process.on('SIGUSR2', () => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
})

/**
 * A folder that others may write to may hold a false server, or links that lead into other files; and
 * what a server is given may show what it need not know.
 */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { ensureRedis } from '../../src/redis/embedded-redis.ts'
import { silent } from '../support/ledger.ts'

const strangers: [string, (home: string) => void, RegExp][] = [
  [
    'that others may enter',
    (home) => chmodSync(home, 0o777),
    /others may enter it \(mode 777\); run: chmod 700/,
  ],
]
if (process.getuid?.() === 0) {
  strangers.push([
    'of another user',
    (home) => chownSync(home, 65_534, 65_534),
    /it belongs to user 65534, and this is user 0; name a folder of your own/,
  ])
}

test.each(strangers)(
  'a server in a folder %s is not joined, and the folder is named',
  async (_whose, open, words) => {
    const folder = mkdtempSync(join(tmpdir(), 'tocsin-stranger-'))
    const home = join(folder, 'data')
    mkdirSync(home)
    open(home)
    let joined = 0
    const server = createServer(() => (joined += 1)).listen(join(home, 'redis.sock'))
    await new Promise((resolve) => server.once('listening', resolve))
    try {
      const held = ensureRedis({ embedded: home, prefix: 'tocsin', allowUnsafe: false }, silent)
      await expect(held).rejects.toThrow(words)
      await expect(held).rejects.toThrow(`redis.embedded: the Redis in ${home}`)
      expect(joined).toBe(0)
    } finally {
      await new Promise((resolve) => server.close(resolve))
      rmSync(folder, { recursive: true, force: true })
    }
  },
)

test.runIf(process.getuid?.() === 0)('a socket of another user is not joined', async () => {
  const home = mkdtempSync(join(tmpdir(), 'tocsin-socket-'))
  let joined = 0
  const server = createServer(() => (joined += 1)).listen(join(home, 'redis.sock'))
  await new Promise((resolve) => server.once('listening', resolve))
  chownSync(join(home, 'redis.sock'), 65_534, 65_534)
  const held = await ensureRedis({ embedded: home, prefix: 'tocsin', allowUnsafe: false }, silent)
  await held.release()
  expect(joined).toBe(0)
  await new Promise((resolve) => server.close(resolve))
  rmSync(home, { recursive: true, force: true })
})

/** The environments of the processes that work in a folder. */
function environmentsIn(folder: string): string[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        const isThere = readlinkSync(`/proc/${pid}/cwd`) === folder
        return isThere ? [readFileSync(`/proc/${pid}/environ`, 'utf8')] : []
      } catch {
        return [] // it has ended, or is another user's
      }
    })
}

test.skipIf(!existsSync('/proc/self/environ'))(
  'no secret of the environment reaches the server',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tocsin-environment-'))
    const home = join(folder, 'data')
    vi.stubEnv('TOCSIN_API_KEY', 'fw_Zanzibar').stubEnv('TZ', 'UTC')
    try {
      const redis = { embedded: home, prefix: 'tocsin', allowUnsafe: false }
      const held = await ensureRedis(redis, silent)
      const environments = environmentsIn(home).join('\n')
      await held.release()
      expect(environments).toContain('TZ=UTC')
      expect(environments).not.toContain('Zanzibar')
    } finally {
      vi.unstubAllEnvs()
      rmSync(folder, { recursive: true, force: true })
    }
  },
)

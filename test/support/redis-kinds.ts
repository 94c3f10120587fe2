/** One Redis behind TLS, an ACL user or a socket. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from './free-port.ts'
import { startRedis } from './redis.ts'

export interface RedisRig {
  /** The section `redis:`, in one line. */
  yaml: string
  stop(): Promise<void>
}

const tlsFolder = join(import.meta.dirname, '../fixtures/tls')

/** Asks for a certificate of its own where `mutual`. */
export async function startTlsRedis({ mutual = false } = {}): Promise<RedisRig> {
  const [cert, key] = ['localhost-cert.pem', 'localhost-key.pem'].map((name) =>
    join(tlsFolder, name),
  )
  const port = await freePort()
  const redis = await startRedis({
    settings: [
      'port 0',
      `tls-port ${port}`,
      `tls-cert-file ${cert}`,
      `tls-key-file ${key}`,
      `tls-ca-cert-file ${cert}`,
      `tls-auth-clients ${mutual ? 'yes' : 'no'}`,
    ],
  })
  const own = mutual ? `, cert_file: ${cert}, key_file: ${key}` : ''
  return {
    yaml: `{url: 'rediss://localhost:${port}', ca_file: ${cert}${own}}`,
    stop: () => redis.stop(),
  }
}

export async function startSocketRedis(): Promise<RedisRig> {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-socket-'))
  const path = join(folder, 'redis.sock')
  const redis = await startRedis({
    settings: ['port 0', `unixsocket ${path}`, 'requirepass s3cret'],
  })
  return {
    yaml: `{url: 'unix://${path}?db=3', password: s3cret}`,
    async stop() {
      await redis.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface AclRig extends RedisRig {
  url: string
  /** A connection of one who may do all. */
  admin: Redis
}

/** `rules`: what user `tocsin` may do; nobody else may do anything. */
export async function startAclRedis(rules: string): Promise<AclRig> {
  const redis = await startRedis({
    settings: [
      'user default off',
      'user admin on >root ~* &* +@all',
      `user tocsin on >s3cret ${rules}`,
    ],
  })
  const url = `redis://127.0.0.1:${redis.port}`
  const admin = new Redis(redis.port, { username: 'admin', password: 'root' })
  return {
    url,
    yaml: `{url: '${url}', username: tocsin, password: s3cret}`,
    admin,
    async stop() {
      admin.disconnect()
      await redis.stop()
    },
  }
}

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { createLogger } from '../../../src/lib/logger.ts'
import { startAclRedis } from '../../support/redis-kinds.ts'
import { startCluster } from '../../support/redis-cluster.ts'
import { startRedis } from '../../support/redis.ts'
import { until } from '../../support/rehearsal.ts'
import { aFile, tocsin } from '../cli/tocsin.ts'
import { aScene, type Scene } from './scene.ts'

const page = readFileSync(join(import.meta.dirname, '../../../docs/install.md'), 'utf8')

/** What the documentation gives to a user of its own, without its name and password. */
function documentedRights(): string {
  const [, rights = ''] = /ACL SETUSER tocsin on >the-password (.+)/.exec(page) ?? []
  return rights
}

/** What works on the ledgers now and then, and what people ask of them. */
async function useAll(scene: Scene): Promise<void> {
  for (const ledger of scene.replica.ledgers) {
    await ledger.run('weigh-records', 0)
    await ledger.run('trim-records', ledger.retention.history, 0)
  }
  const [uid = ''] = scene.sandbox.received.webhook[0]!.uids
  const file = aFile('tocsin.yaml', scene.yaml)
  for (const command of [
    ['items', 'show', uid],
    ['audit'],
    ['feeds', 'list'],
    ['feeds', 'pause', 'brand', '--reason', 'r'],
    ['feeds', 'resume', 'brand'],
    ['accounts', 'list'],
    ['sinks', 'list'],
    ['sinks', 'pause', 'siem', '--reason', 'r'],
    ['sinks', 'resume', 'siem'],
    ['items', 'resend', '--sink', 'siem', '--state', 'delivered', '--since', '1h', '--yes'],
    ['routes', 'explain', uid],
    ['silences', 'list'],
    ['items', 'list'],
  ]) {
    const { code, err } = await tocsin(...command, '--config', file)
    expect({ command, code, err }).toEqual({ command, code: 0, err: '' })
  }
}

test('a user with the documented rights, and no others, is enough', async () => {
  const redis = await startAclRedis(documentedRights())
  const scene = await aScene(redis.yaml)
  try {
    scene.sandbox.addEvents(12)
    await scene.settled(12)
    await useAll(scene)
    expect(await redis.admin.call('ACL', 'LOG')).toEqual([])
    expect(await redis.admin.call('ACL', 'DRYRUN', 'tocsin', 'FLUSHALL')).toContain(
      'no permissions',
    )
  } finally {
    await scene.stop()
    await redis.stop()
  }
})

test('the same rights are enough on a Cluster, and commands work there beside the daemon', async () => {
  const redis = await startCluster()
  const { cluster = [], password } = redis.config
  const admins = cluster.map((node) => new Redis({ ...node, password: password!.reveal() }))
  const rights = ['on', '>s3cret', ...documentedRights().split(' ')]
  await Promise.all(admins.map((admin) => admin.call('ACL', 'SETUSER', 'tocsin', ...rights)))
  const scene = await aScene(
    redis.yaml.replace(/password: .*}/, 'username: tocsin, password: s3cret}'),
  )
  try {
    scene.sandbox.addEvents(12)
    await scene.settled(12)
    await useAll(scene)
    const refused = await Promise.all(admins.map((admin) => admin.call('ACL', 'LOG')))
    expect(refused.flat()).toEqual([])
  } finally {
    await scene.stop()
    for (const admin of admins) admin.disconnect()
    await redis.stop()
  }
})

test('a password that changes while it runs is waited for, and said once', async () => {
  const redis = await startRedis({ settings: ['requirepass first'], mayCrash: true })
  const file = aFile('password', 'first')
  const lines: string[] = []
  const logger = createLogger({
    level: 'warn',
    destination: { write: (line) => void lines.push(line) },
  })
  const scene = await aScene(`{url: '${redis.url}', password_file: ${file}}`, logger)
  const said = (): number =>
    lines.filter((line) => line.includes('redis refuses the sign-in')).length
  try {
    scene.sandbox.addEvents(12)
    await scene.settled(12)
    await redis.restart(['requirepass second'])
    await until('it says so', () => said() > 0)
    const line = JSON.parse(lines.find((one) => one.includes('refuses the sign-in'))!) as object
    expect(line).toMatchObject({
      place: `redis.url: Redis at ${new URL(redis.url).host}`,
      remedy: expect.stringContaining('redis.password_file') as string,
    })
    scene.sandbox.addEvents(12)
    expect((await fetch(`${scene.url}/healthz`)).status).toBe(200)
    expect((await fetch(`${scene.url}/readyz`)).status).toBe(503)
    writeFileSync(file, 'second')
    await scene.settled(24)
    expect(said()).toBe(1)
    expect(lines.join('')).not.toMatch(/first|second/)
  } finally {
    await scene.stop()
    await redis.stop()
  }
})

import type { Redis as IORedis } from 'ioredis'
import { expect, test } from 'vitest'
import { connectRedis } from '../../../src/redis/connection.ts'
import { secretFromText } from '../../../src/lib/config/secret.ts'
import { silent } from '../../support/ledger.ts'
import { startRedis } from '../../support/redis.ts'
import { startCluster } from '../../support/redis-cluster.ts'
import { startSentinels } from '../../support/redis-sentinel.ts'
import { startTlsRedis } from '../../support/redis-kinds.ts'
import { startTcpServer } from '../../support/tcp-server.ts'
import { aFile, tocsin, type Ended } from '../cli/tocsin.ts'

const rest = `
http: {port: 0}
accounts: {main: {base_url: 'http://127.0.0.1:9', api_key: fw_k}}
feeds: {brand: {type: events, identifier_group: 1, detail: []}}
sinks: {siem: {type: webhook, url: 'http://127.0.0.1:9/', allow_private: true}}
route: {sinks: [siem]}
`

test('one master of a Cluster that may lose events is refused by name', async () => {
  const redis = await startCluster({ thirdSettings: ['appendonly no'] })
  try {
    const file = aFile('tocsin.yaml', `redis: ${redis.yaml}\n${rest}`)
    const { code, err } = await tocsin('run', '--config', file)
    expect(err).toMatch(
      /redis\.cluster: this Redis may lose events: 127\.0\.0\.1:\d+ keeps no append-only file/,
    )
    expect(code).toBe(2)
  } finally {
    await redis.stop()
  }
})

test('places that are not there are named, with what to correct', async () => {
  const plain = await startRedis()
  const web = await startTcpServer({ onConnect: (socket) => socket.end('HTTP/1.1 400 No\r\n\r\n') })
  const places = [
    "{sentinels: {name: m, nodes: ['127.0.0.1:1']}}",
    "{cluster: ['127.0.0.1:1']}",
    `{url: '${plain.url.replace('redis:', 'REDISS:')}'}`,
    `{url: 'rediss://127.0.0.1:${web.port}'}`,
  ]
  const [sentinels, cluster, withoutTls, noRedis] = await Promise.all(places.map(feedsList))
  await plain.stop()
  await web.stop()
  expect(noRedis!.err).toContain(
    'what answers there speaks no TLS: rediss:// needs a port that does',
  )
  expect(withoutTls!.err).toMatch(
    /^redis\.url: Redis at \S+ is not reachable \(no answer in time, as from a port without TLS\);/,
  )
  expect(sentinels!.err).toBe(
    'redis.sentinels: Redis "m" of 127.0.0.1:1 is not reachable (failed to connect to sentinel 127.0.0.1:1 because Connection is closed.); start it, or correct redis.sentinels\n',
  )
  expect(cluster!.err).toBe(
    'redis.cluster: the Cluster of 127.0.0.1:1 is not reachable (no answer in time); start it, or correct redis.cluster\n',
  )
})

test('a login that sentinels or a Cluster refuse, and a master they do not know, are named', async () => {
  const sentinels = await startSentinels()
  const cluster = await startCluster()
  try {
    const asked = [
      sentinels.yaml.replace('password: sentinel-', 'password: wrong-'),
      sentinels.yaml.replace(/password: rig-.*}/, 'password: guess-work}'),
      sentinels.yaml.replace('name: rig', 'name: other'),
      cluster.yaml.replace(/password: .*}/, 'password: guess-work}'),
      cluster.yaml.replace(/, password: .*}/, '}'),
    ]
    const said = (await Promise.all(asked.map(feedsList))).map(({ err }) => err)
    expect(said[0]).toMatch(/^redis.sentinels: .* refuses this user or password \(WRONGPASS\)/)
    expect(said[1]).toMatch(/^redis.sentinels: .* refuses this user or password \(WRONGPASS\)/)
    expect(said[2]).toMatch(/^redis.sentinels: .*the sentinels know no master of this name/)
    expect(said[3]).toMatch(/^redis.cluster: .* refuses this user or password \(WRONGPASS\)/)
    expect(said[4]).toMatch(/^redis.cluster: .* asks for a password \(NOAUTH\)/)
    expect(said.join('')).not.toContain('guess-work')
  } finally {
    await sentinels.stop()
    await cluster.stop()
  }
})

test('a sentinel that hangs does not keep anyone from asking the next', async () => {
  const hanging = await startTcpServer()
  const redis = await startSentinels()
  try {
    const yaml = redis.yaml.replace("nodes: ['", `nodes: ['127.0.0.1:${hanging.port}', '`)
    expect(await feedsList(yaml)).toMatchObject({ code: 0, err: '' })
    expect(hanging.connections()).toBe(1)
  } finally {
    await redis.stop()
    await hanging.stop()
  }
})

test('a certificate of unknown authorities, or for another host, is refused', async () => {
  const redis = await startTlsRedis()
  try {
    const unknown = await feedsList(redis.yaml.replace(/, ca_file: [^}]*/, ''))
    const otherHost = await feedsList(redis.yaml.replace('localhost:', '127.0.0.1:'))
    expect(unknown.err).toContain('is not reachable (DEPTH_ZERO_SELF_SIGNED_CERT)')
    expect(otherHost.err).toContain('is not reachable (ERR_TLS_CERT_ALTNAME_INVALID)')
    expect(await feedsList(redis.yaml)).toMatchObject({ code: 0 })
  } finally {
    await redis.stop()
  }
})

test('an alert after a certificate was refused ends no process, of no connection', async () => {
  const redis = await startTlsRedis()
  const [, url = ''] = /url: '([^']+)'/.exec(redis.yaml) ?? []
  const config = { url: secretFromText(url), prefix: 'late', allowUnsafe: false }
  const connection = connectRedis(config, silent) as IORedis
  const connections = [connection, connection.duplicate()]
  try {
    for (const one of connections) {
      await new Promise((resolve) => one.once('error', resolve))
      const { stream } = one
      await new Promise((resolve) => setImmediate(resolve))
      expect(stream.emit('error', new Error('tlsv1 alert decode error'))).toBe(true)
    }
  } finally {
    for (const one of connections) one.disconnect()
    await redis.stop()
  }
})

function feedsList(redis: string): Promise<Ended> {
  return tocsin('feeds', 'list', '--config', aFile('tocsin.yaml', `redis: ${redis}\n${rest}`))
}

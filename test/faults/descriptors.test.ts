/** Whoever reaches the port of `/metrics` may hold connections, but takes none away from sinks and key files. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { aFile, environment } from '../integration/cli/tocsin.ts'
import { startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const main = join(import.meta.dirname, '../../src/main.ts')

test.skipIf(process.platform === 'win32')(
  '900 half-sent requests at 400 descriptors: sinks get their messages all the same',
  async () => {
    const [redis, sandbox] = await Promise.all([
      startRedis(),
      startSandbox({ enforceLimits: false }),
    ])
    const key = aFile('api-key', sandbox.apiKeys[0]!)
    const file = aFile(
      'tocsin.yaml',
      `
redis: {url: '${redis.url}'}
http: {port: 0}
accounts:
  main: {base_url: '${sandbox.url}', api_key_file: '${key}', limits: {search: 50, basic: 50}}
feeds: {brand: {type: events, identifier_group: 1042, every: 5s, detail: []}}
sinks:
  siem: {type: webhook, url: '${sandbox.url}/hooks/siem', secret: '${sandbox.webhookSecret}', allow_private: true}
route: {sinks: [siem]}
`,
    )
    const run = ['-c', 'ulimit -n 400; exec "$@"', 'sh', process.execPath, main]
    const daemon = spawn('sh', [...run, 'run', '--config', file], { env: environment })
    let said = ''
    daemon.stdout.on('data', (chunk) => (said += String(chunk)))
    const sockets: Socket[] = []
    onTestFinished(async () => {
      sockets.forEach((socket) => socket.destroy())
      daemon.kill('SIGKILL')
      await Promise.all([sandbox.close(), redis.stop()])
    })
    await until('it runs', () => said.includes('tocsin runs'))
    const [, port] = /"port":(\d+)/.exec(said) ?? []
    await Promise.all(
      Array.from({ length: 900 }, async () => {
        const socket = connect(Number(port), '127.0.0.1', () => {
          socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-')
        })
        socket.on('error', () => undefined)
        sockets.push(socket)
        await Promise.race([once(socket, 'connect'), once(socket, 'close')])
      }),
    )
    const uids = sandbox.addEvents(5).map(({ uid }) => uid)
    const delivered = (): string[] => sandbox.received.webhook.flatMap((message) => message.uids)
    await until('sinks get the events', () => uids.every((uid) => delivered().includes(uid)))
    expect(said).not.toContain('EMFILE')
    await until('the port answers again', async () => {
      const again = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined)
      return again?.status === 200
    })
  },
)

import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { startSandbox, type Sandbox } from '../../src/sandbox/sandbox.ts'
import { connectTo } from '../support/ledger.ts'
import { startRedis, type TestRedis } from '../support/redis.ts'
import { kept, reloaded, startDaemon, type Daemon } from '../integration/cli/daemon.ts'

let redis: TestRedis
let sandbox: Sandbox

beforeAll(async () => {
  redis = await startRedis({ mayCrash: true })
  sandbox = await startSandbox()
})
afterAll(async () => {
  await sandbox.close()
  await redis.stop()
})

function aConfig(prefix: string, sinks: string[]): string {
  const sink = (name: string): string =>
    `${name}: {type: webhook, url: '${sandbox.url}/hooks/${prefix}-${name}', secret: '${sandbox.webhookSecret}', allow_private: true}`
  return `
redis: {url: '${redis.url}', prefix: ${prefix}}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: fw_sandbox}}
feeds: {brand: {type: events, identifier_group: 1042, detail: [], every: 5s}}
sinks: {${sinks.map(sink).join(', ')}}
route: {sinks: [${sinks.join(', ')}]}
`
}

/** How often something was sent there. */
function sent(path: string): number {
  return sandbox.requests.filter((request) => request.path === `/hooks/${path}`).length
}

/** From now on a send to the path hangs; resolves when one does. */
async function hangingSend(path: string): Promise<{ mend: () => void }> {
  const mend = sandbox.faults.add({ on: `/hooks/${path}`, effect: 'hang' })
  onTestFinished(mend)
  sandbox.addEvent()
  await vi.waitUntil(() => sent(path) > 0, { timeout: 45_000 })
  return { mend }
}

/** Its own words for an end in time: the second at its deadline, 9.7 s after the request. */
function endsOf(daemon: Daemon): unknown[] {
  const words = ['stopped', 'stopping took too long; left as it stands']
  return words.flatMap((message) => daemon.lines(message))
}

/** A daemon whose old configuration waits for a send while the new one, with one more sink, has come. */
async function betweenTwo(prefix: string): Promise<{ daemon: Daemon; mend: () => void }> {
  const daemon = await startDaemon(aConfig(prefix, ['siem']))
  const { mend } = await hangingSend(`${prefix}-siem`)
  daemon.reload(aConfig(prefix, ['siem', 'extra']))
  await daemon.hasSaid(
    'configuration read again; it takes over when what is being sent has ended',
    1,
  )
  return { daemon, mend }
}

test('SIGTERM while the old configuration finishes its sends ends the process within 10 s', async () => {
  const { daemon } = await betweenTwo('term')
  daemon.child.kill('SIGTERM')
  const { code, err } = await daemon.ended
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(endsOf(daemon)).toHaveLength(1)
  expect(daemon.lines(reloaded)).toEqual([])
})

test('signals that come during a reload are one more reload, of the file as it is then', async () => {
  const { daemon } = await betweenTwo('twice')
  daemon.reload(aConfig('twice', ['siem', 'second']))
  daemon.reload(aConfig('twice', ['siem', 'third']))
  await daemon.hasSaid(reloaded, 2)
  expect(daemon.lines(reloaded)).toMatchObject([
    { changes: ['sinks.extra added', 'route changed'] },
    { changes: ['sinks.extra removed', 'sinks.third added', 'route changed'] },
  ])
})

const losses = {
  async gone() {
    await redis.kill()
    return () => redis.restart()
  },
  async 'refusing to write'() {
    const connection = connectTo(redis.url)
    await connection.config('SET', 'min-replicas-to-write', '1')
    return async () => {
      await connection.config('SET', 'min-replicas-to-write', '0')
      connection.disconnect()
    }
  },
}

test.each(Object.entries(losses))(
  'Redis is %s once the old configuration has stopped: the new one waits, says so, and goes on',
  async (name, lose) => {
    const prefix = name.replaceAll(' ', '-')
    const { daemon, mend } = await betweenTwo(prefix)
    const restore = await lose()
    mend()
    await daemon.says('the old configuration has stopped; the new one waits for Redis')
    expect(daemon.lines(reloaded)).toEqual([])
    await restore()
    await daemon.hasSaid(reloaded, 1)
    const event = sandbox.addEvent()
    const hasIt = (sink: string): boolean =>
      sandbox.received.webhook.some(
        ({ to, body }) => to === `/hooks/${prefix}-${sink}` && body.includes(event.uid),
      )
    // the sends that were cut off have opened the circuit, where there were five of them
    await vi.waitUntil(() => hasIt('siem') && hasIt('extra'), { timeout: 60_000 })
  },
)

test('a Redis that refuses to write keeps the old configuration, and the log says why', async () => {
  const daemon = await startDaemon(aConfig('kept', ['siem']))
  const restore = await losses['refusing to write']()
  onTestFinished(restore)
  daemon.reload(aConfig('kept', ['siem', 'extra']))
  await daemon.hasSaid(kept, 1)
  expect(JSON.stringify(daemon.lines(kept))).toContain('NOREPLICAS')
  const body = await daemon.metrics()
  expect(body).not.toContain('sink="extra"')
  expect(body).toContain('tocsin_config_last_reload_successful 0')
})

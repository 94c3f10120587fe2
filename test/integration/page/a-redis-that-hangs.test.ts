/** A Redis that keeps its connection and answers nothing: whoever asks is told so, and no act begins. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, afterEach, expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/load.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { Redis } from '../../../src/redis/client.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { readActs } from '../../../src/store/history/acts.ts'
import { ask } from '../../support/door.ts'
import { connectTo } from '../../support/ledger.ts'
import { askApi, servePage, type StillPage, tokens } from '../../support/page-rig.ts'
import { startRedis, type TestRedis } from '../../support/redis.ts'

const keys = createKeys('hung')
const folder = mkdtempSync(join(tmpdir(), 'tocsin-hung-'))
let server: TestRedis
let redis: Redis
let pid: number
let pages: StillPage[]

/** Patience passes forty times as fast. */
const clock = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 40, signal),
}

function configOf(users: string) {
  const text = `
redis: {url: '${server.url}', prefix: hung}
http: {port: 0${users}}
accounts: {main: {base_url: 'https://api.example.com', link_hosts: [app.example.com], api_key: fw_x}}
feeds: {brand: {type: events, account: main, identifier_group: 1}}
sinks: {soc: {type: slack, url: 'https://hooks.slack.com/services/T0/B0/x'}}
route: {sinks: [soc]}
`
  return parseConfig(text, { file: 'test.yaml', env: {} }).config
}

beforeAll(async () => {
  server = await startRedis({ mayCrash: true })
  redis = connectTo(server.url)
  pid = Number(/process_id:(\d+)/.exec(await redis.info('server'))![1])
  const file = join(folder, 'robot')
  writeFileSync(file, tokens.robot, { mode: 0o600 })
  const users = ['', `, users: [{name: robot, role: act, token_file: '${file}'}]`]
  pages = await Promise.all(
    users.map((of) => servePage({ redis, keys, config: configOf(of) }, clock)),
  )
})
afterAll(async () => {
  await Promise.all((pages ?? []).map((page) => page.stop()))
  redis?.disconnect()
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => void process.kill(pid, 'SIGSTOP'))
afterEach(() => void process.kill(pid, 'SIGCONT'))

const problem = 'application/problem+json; charset=utf-8'
const said = expect.stringContaining('Redis does not answer; try again.')

test('a program is told so, whatever it asks', async () => {
  for (const path of ['/status', '/rules', '/messages', '/tenants']) {
    const { status, text, headers } = await askApi(pages[1]!, path)
    expect([path, status, text, headers['content-type']]).toEqual([path, 503, said, problem])
  }
})

test('people at this machine are told so, by every view and the file', async () => {
  for (const path of ['/', '/told', '/rules?matchers=type%3Dx&for=2h', '/told.csv']) {
    const { status, body } = await ask(pages[0]!, path)
    expect([path, status, body]).toEqual([path, 503, said])
  }
})

test('an act does not begin without its note, and the late note says that it was refused', async () => {
  const body = { reason: 'they move' }
  const { status, text } = await askApi(pages[1]!, '/sinks/soc/pause', { body })
  expect([status, text]).toEqual([503, said])
  process.kill(pid, 'SIGCONT')
  const refused = { act: '/sinks/soc/pause', by: 'robot', outcome: 'refused' }
  await expect.poll(() => readActs({ redis, keys }, 5)).toMatchObject([refused])
  expect(await redis.exists(keys.shared('circuit', 'soc'))).toBe(0)
})

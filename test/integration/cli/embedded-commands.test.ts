/** Every command that opens the store works on the embedded Redis of a daemon that has ended. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureRedis } from '../../../src/redis/embedded-redis.ts'
import { optionsByCommand } from '../../docs/commands.ts'
import { silent } from '../../support/ledger.ts'
import { aScene, type Scene } from '../redis/scene.ts'
import { aFile, tocsin } from './tocsin.ts'

const folder = mkdtempSync(join(tmpdir(), 'tocsin-embedded-'))
const home = join(folder, 'data')
let scene: Scene | undefined

beforeAll(async () => {
  const config = { embedded: home, prefix: 'tocsin', allowUnsafe: false }
  const redis = await ensureRedis(config, silent)
  try {
    scene = await aScene(`{embedded: ${home}}`)
    scene.sandbox.addEvents(3)
    await scene.settled(3)
  } finally {
    await scene?.replica.stop()
    await redis.release()
  }
})

afterAll(async () => {
  await scene?.sandbox.close()
  rmSync(folder, { recursive: true, force: true })
})

/** `UID` stands for an event of the ledger; the words are what only the ledger could have said. */
const asked: [line: string, words: RegExp, code?: number][] = [
  ['feeds list brand', /counts\.new +3/],
  ['feeds pause brand --reason trial', /brand/],
  ['feeds resume brand', /brand/],
  ['feeds rewind brand --to 2d --yes', /brand/],
  ['sinks list', /siem/],
  ['sinks pause siem --reason trial', /siem/],
  ['sinks resume siem', /siem/],
  ['routes explain UID', /root/],
  ['render UID --sink siem', /UID/],
  ['items show UID', /UID/],
  ['audit --ledger', /3 records/],
  ['audit', /brand/],
  ['accounts list', /main +configured/],
  ['accounts discard gone', /gone/, 2],
  ['status', /3 events seen/],
  ['report', /3 events seen/],
  ['items list', /nothing needs somebody/],
  ['items list --state delivered', /delivered .*siem/],
  [`items show b${'0'.repeat(40)}`, /No event that the ledger still knows/, 1],
  ['items resend --sink siem --state delivered --since 1h --yes', /3 items queued/],
  ['items move --sink gone --to siem', /gone/, 2],
  ['items discard --sink gone', /gone/, 2],
  ['silences list', /no silences/],
  ['silences add type=paste --for 1h --reason trial --severity low --by ann', /silence/],
  ['silences expire nothing', /nothing/, 2],
  ['sinks flush soc', /soc/],
  ['token test', /works/],
  ['tenants list', /Tenant 42/],
  ['events search --keyword a', /SEVERITY|nothing was found/],
  ['doctor', /redis\.embedded/],
]

/** These open no store, or a Redis of their own. */
const without = ['run', 'init', 'check', 'schema', 'demo', 'sandbox', 'sinks test', 'users hash']
/** Like `events search` and `tenants list` they ask the service at the pace that Redis keeps. */
const ofService = ['api', 'credentials', 'assets', 'groups', 'monitoring', 'reports']

test('no command that opens the store is left out', async () => {
  const known = [...asked.map(([line]) => line), ...without, ...ofService]
  const commands = [...(await optionsByCommand()).keys()]
  const isKnown = (command: string): boolean =>
    known.some((one) => one.startsWith(command) || command.startsWith(`${one} `))
  const serviceOnly = /^(events|tenants) /
  expect(commands.filter((one) => !isKnown(one) && !serviceOnly.test(one))).toEqual([])
})

test.each(asked)('%s, without a daemon', async (line, words, code = 0) => {
  const uid = scene?.sandbox.received.webhook[0]?.uids[0] ?? ''
  const args = line.split(' ').map((word) => word.replace('UID', uid))
  const soc = `type: slack, url: '${scene?.sandbox.slackUrl}', allow_private: true`
  const digest = "digest: {schedule: '0 8 * * *', timezone: UTC}"
  const yaml = scene?.yaml.replace('sinks: {', `sinks: {soc: {${soc}, ${digest}}, `)
  const file = aFile('tocsin.yaml', yaml ?? '')
  const ended = await tocsin(...args, '--config', file)
  expect(ended.out + ended.err).toMatch(words.source === 'UID' ? uid : words)
  expect(ended.err).not.toMatch(/Redis|ECONN|ENOENT|not reachable/)
  expect(ended.code).toBe(code)
  expect(existsSync(join(home, 'redis.sock'))).toBe(false) // it left no server behind
})

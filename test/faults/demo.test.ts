import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { DemoState } from '../../src/cli/demo/folder.ts'
import { connectRedis } from '../../src/redis/connection.ts'
import { secretFromText } from '../../src/lib/secret.ts'
import { silent } from '../support/ledger.ts'

const root = join(import.meta.dirname, '../..')

const accounting =
  /^fetched (\d+), new (\d+) \(late (\d+)\), duplicate (\d+), quarantined (\d+), delivered slack (\d+) email (\d+) webhook (\d+), held (\d+), suppressed (\d+), dead (\d+), pending (\d+), unaccounted (\d+)$/gm

interface Arrival {
  kind: 'arrival'
  sink: string
  form: string
  events: number
  uids: string[]
  text: string
}

interface Figures {
  kind: 'accounting'
  fetched: number
  new: number
  late: number
  delivered: Record<string, number>
  unaccounted: number
}

let home = ''

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'tocsin-demo-'))
})

afterAll(() => rmSync(home, { recursive: true }))

function launch(...args: string[]): ChildProcess {
  const command = [join(root, 'src/main.ts'), 'demo', ...args]
  return spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'pipe'] })
}

async function run(...args: string[]): Promise<{ code: number; text: string; errors: string }> {
  const child = launch(...args)
  let text = ''
  let errors = ''
  child.stdout!.on('data', (chunk) => (text += String(chunk)))
  child.stderr!.on('data', (chunk) => (errors += String(chunk)))
  const [code] = (await once(child, 'close')) as [number]
  return { code, text, errors }
}

describe.concurrent('the demo', () => {
  test('accounts for everything, and goes on from there the next time', async () => {
    const folder = join(home, 'twice')
    const first = await run('--for', '6s', '--folder', folder)
    expect(first).toMatchObject({ code: 0, errors: '' })
    expect(first.text).not.toContain('\u001B')
    const found = [...first.text.matchAll(accounting)]
    expect(found).toHaveLength(1)
    const [fetched, isNew, late, duplicate, quarantined, ...items] = found[0]!.slice(1).map(Number)
    const [slack, email, webhook, , , dead, pending, unaccounted] = items
    expect(fetched).toBe(isNew! + duplicate! + quarantined!)
    expect(isNew).toBeGreaterThanOrEqual(40)
    expect(Math.min(slack!, email!, webhook!)).toBeGreaterThan(0)
    expect([dead, unaccounted]).toEqual([0, 0])
    expect(late).toBe(1)
    expect(first.text).toMatch(/^messages slack .*first poll.*, email .*\d digests?\), webhook /m)
    expect(first.text).toMatch(/ slack .*Backlog of feed staff: \d+ events/)
    expect(first.text).toContain(join(folder, 'tocsin.yaml'))
    expect(first.text).toMatch(/, live: http:\/\/127\.0\.0\.1:\d+\/_sandbox\/received\n/)

    const second = await run('--for', '6s', '--folder', folder, '--output', 'json')
    expect(second).toMatchObject({ code: 0, errors: '' })
    const said = second.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Arrival | Figures)
    const figures = said.at(-1) as Figures
    const arrivals = said.slice(0, -1) as Arrival[]
    expect(figures).toMatchObject({ kind: 'accounting', unaccounted: 0 })
    for (const sink of ['slack', 'email', 'webhook']) {
      const events = arrivals.filter((one) => one.sink === sink).map((one) => one.events)
      expect(events.length).toBeGreaterThan(0)
      expect(events.reduce((sum, count) => sum + count)).toBe(figures.delivered[sink])
    }
    // the whole story of both runs: each event new at most once, those of the first start not again
    const story = readFileSync(join(folder, 'history.jsonl'), 'utf8').trim().split('\n')
    const uids = story.map((line) => (JSON.parse(line) as { event: { uid: string } }).event.uid)
    const leaked = readFileSync(join(folder, 'credentials.jsonl'), 'utf8').trim().split('\n')
    expect(isNew! + figures.new).toBeLessThanOrEqual(new Set(uids).size + leaked.length)
    const delivered = arrivals.filter((one) => one.sink === 'webhook').flatMap((one) => one.uids)
    const again = delivered.filter((uid) => uids.slice(0, 40).includes(uid))
    expect(again.length).toBeLessThanOrEqual(pending!)
    expect(arrivals.map(({ form }) => form)).toContain('group')
    expect(arrivals.map(({ form }) => form)).toContain('digest')
    const texts = arrivals.map(({ text }) => text)
    expect(texts).toContainEqual(expect.stringMatching(/, worst: Leaked credential: \S+@/))
    expect(delivered).toContainEqual(expect.stringMatching(/^credential\/\d+$/))
  }, 180_000)

  test('leaves nothing behind when it is killed, and the next one makes up for it', async () => {
    const folder = join(home, 'killed')
    const child = launch('--folder', folder)
    await once(child.stdout!, 'data')
    child.kill('SIGKILL')
    const { ports } = stateOf(folder)
    await vi.waitFor(() => expect(refuses(ports.redis)).resolves.toBe(true), { timeout: 30_000 })
    const next = await run('--for', '1s', '--folder', folder)
    expect(next).toMatchObject({ code: 0, errors: '' })
    expect([...next.text.matchAll(accounting)]).toHaveLength(1)
  }, 120_000)

  test('ends with an error when its Redis dies under it', async () => {
    const folder = join(home, 'broken')
    const child = launch('--folder', folder)
    let errors = ''
    child.stderr!.on('data', (chunk) => (errors += String(chunk)))
    child.stdout!.resume()
    await once(child.stdout!, 'data')
    const { ports, redisPassword } = stateOf(folder)
    const url = `redis://:${redisPassword}@127.0.0.1:${ports.redis}`
    const config = { url: secretFromText(url), prefix: 'tocsin', allowUnsafe: false }
    const redis = connectRedis(config, silent)
    const [, pid] = /process_id:(\d+)/.exec(await redis.info('server')) ?? []
    redis.disconnect()
    process.kill(Number(pid), 'SIGKILL')
    const [code] = (await once(child, 'close')) as [number]
    expect(code).toBe(1)
    expect(errors).toContain('the private Redis ended by itself')
  }, 120_000)

  test('ends in order on Ctrl-C', async () => {
    const child = launch('--folder', join(home, 'interrupted'))
    let text = ''
    child.stdout!.on('data', (chunk) => (text += String(chunk)))
    await once(child.stdout!, 'data')
    child.kill('SIGINT')
    const [code] = (await once(child, 'close')) as [number]
    expect(code).toBe(0)
    expect([...text.matchAll(accounting)]).toHaveLength(1)
  }, 120_000)

  test('refuses to share its folder', async () => {
    const folder = join(home, 'shared')
    const child = launch('--folder', folder)
    await once(child.stdout!, 'data')
    const { code, text, errors } = await run('--for', '1s', '--folder', folder)
    expect([code, text]).toEqual([2, ''])
    expect(errors).toContain('another demo runs in')
    child.kill('SIGINT')
    await once(child, 'close')
  }, 120_000)
})

function stateOf(folder: string): DemoState {
  return JSON.parse(readFileSync(join(folder, 'state.json'), 'utf8')) as DemoState
}

/** Whether nobody listens on the port. */
async function refuses(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return false
  } catch {
    return true
  } finally {
    socket.destroy()
  }
}

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CommandError } from '../../../src/cli/terminal.ts'
import { openDemoFolder, type DemoFolder } from '../../../src/cli/demo/folder.ts'

let home = ''
let path = ''
const open: DemoFolder[] = []

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tocsin-demo-'))
  path = join(home, 'demo')
})

afterEach(() => {
  for (const folder of open.splice(0)) folder.close()
  rmSync(home, { recursive: true })
})

function openFolder(given: { isFresh?: boolean; seed?: number } = {}): DemoFolder {
  const folder = openDemoFolder({ path, isFresh: false, seed: undefined, ...given })
  open.push(folder)
  return folder
}

test('the next run finds the secrets, the seed and the ports of the last', async () => {
  const first = openFolder({ seed: 7 })
  await first.settlePorts()
  first.close()
  expect(openFolder().state).toEqual(first.state)
  expect(new Set(Object.values(first.state.ports)).size).toBe(4)
})

test('a folder that cannot be made is the mistake of who named it', () => {
  writeFileSync(path, 'a file')
  path = join(path, 'demo')
  expect(openFolder).toThrow(expect.objectContaining({ name: 'CommandError', reason: 'mistake' }))
  expect(openFolder).toThrow(/cannot be made .* --folder/)
})

test('a port that another program has taken meanwhile is replaced', async () => {
  const folder = openFolder()
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const taken = (server.address() as AddressInfo).port
  folder.state.ports.http = taken
  await folder.settlePorts()
  expect(folder.state.ports.http).not.toBe(taken)
  expect(folder.state.ports.http).toBeGreaterThan(0)
  server.close()
})

test('a fresh start forgets all of it', async () => {
  const first = openFolder()
  await first.settlePorts()
  writeFileSync(first.at('history.jsonl'), 'something')
  first.close()
  const second = openFolder({ isFresh: true })
  expect(second.state.apiKey).not.toBe(first.state.apiKey)
  expect(existsSync(second.at('history.jsonl'))).toBe(false)
})

test('a folder that no demo made is refused, and left as it is', () => {
  mkdirSync(path, { mode: 0o700 })
  writeFileSync(join(path, 'thesis.txt'), 'years of work')
  expect(() => openFolder({ isFresh: true })).toThrow(/holds files that no demo made.*--folder/)
  expect(existsSync(join(path, 'thesis.txt'))).toBe(true)
})

test('two demos at once are one too many', () => {
  // the parent of this process lives as long as the test
  mkdirSync(path, { mode: 0o700 })
  openFolder().close()
  writeFileSync(join(path, 'lock'), String(process.ppid))
  expect(() => openFolder({ isFresh: true })).toThrow(CommandError)
  expect(() => openFolder()).toThrow(/another demo runs in/)
  rmSync(join(path, 'lock'))
})

test('the lock of a run that is gone is taken over', () => {
  openFolder().close()
  writeFileSync(join(path, 'lock'), '4194305') // above the highest process id of Linux
  expect(() => openFolder()).not.toThrow()
})

test('another seed than the story so far is refused', async () => {
  const first = openFolder({ seed: 7 })
  await first.settlePorts()
  first.close()
  expect(() => openFolder({ seed: 8 })).toThrow(/--fresh/)
  expect(() => openFolder({ seed: 7 })).not.toThrow()
})

test('a state that cannot be read is refused with what to do', () => {
  openFolder().close()
  writeFileSync(join(path, 'state.json'), '{"seed": "x"')
  expect(() => openFolder()).toThrow(/--fresh/)
  expect(() => openFolder({ isFresh: true })).not.toThrow()
})

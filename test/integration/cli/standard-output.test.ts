/** What a command does when its standard output breaks under it, in a process of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'
import { environment } from './tocsin.ts'

const tests = redisForTests()
const main = join(import.meta.dirname, '../../../src/main.ts')

type Ended = { code: number | null; err: string }

/** `output`: a file, or `gone`: a pipe that nobody reads. */
async function runTo(output: string, { config }: ServiceScene, ...args: string[]): Promise<Ended> {
  const file = output === 'gone' ? undefined : openSync(output, 'w')
  onTestFinished(() => {
    if (file !== undefined) closeSync(file)
  })
  const child = spawn(process.execPath, [main, ...args, '--config', config], {
    stdio: ['ignore', file ?? 'pipe', 'pipe'],
    env: environment,
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  child.stdout?.destroy()
  const [[code], err] = await Promise.all([
    once(child, 'close') as Promise<[number | null]>,
    text(child.stderr!),
  ])
  return { code, err }
}

async function aScene(): Promise<ServiceScene> {
  const scene = await aServiceScene(tests)
  scene.sandbox.addEvents(60, { groupIds: [1042] })
  return scene
}

const search = ['events', 'search', '--group=1042', '--all']

test('a read ends quietly when its reader has seen enough, and asks for no more', async () => {
  const scene = await aScene()
  expect(await runTo('gone', scene, ...search, '--output=ndjson')).toEqual({ code: 0, err: '' })
  expect(scene.sent().length).toBeLessThan(4)
})

test('what changes something is done to its end, though nobody reads', async () => {
  const scene = await aScene()
  const change = ['api', 'assets.toggle', '--asset-id=77', '--is-disabled=true', '--yes']
  expect(await runTo('gone', scene, ...change)).toEqual({ code: 0, err: '' })
  expect(scene.sent()).toHaveLength(1)
})

describe.skipIf(!existsSync('/dev/full'))('on a full disk', () => {
  const lost = 'standard output cannot be written (ENOSPC); what it has is not whole\n'

  test.each(['text', 'json'])('a read in %s fails and says so', async (form) => {
    const ended = await runTo('/dev/full', await aScene(), ...search, '--output', form)
    expect(ended).toEqual({ code: 1, err: lost })
  })
})

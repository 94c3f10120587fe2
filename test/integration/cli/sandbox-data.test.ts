import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { knownReportRequests } from '../../../src/sandbox/reports/reports.ts'
import { ask, post } from '../sandbox/client.ts'
import { startTocsin, tocsin } from './tocsin.ts'

interface Places {
  url: string
  api_keys: string[]
  report_requests: Record<string, string>
}

const anywhere = ['--port=0', '--smtp-port=0', '--rate=0', '--backlog=5', '--output=json']

function aFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-data-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function startIn(folder: string): Promise<Places & { kill: () => Promise<unknown> }> {
  const running = startTocsin('sandbox', ...anywhere, `--data=${folder}`)
  await running.says('\n')
  const places = JSON.parse(running.soFar()) as Places
  const kill = (): Promise<unknown> => {
    running.child.kill('SIGKILL')
    return running.ended
  }
  return { ...places, kill }
}

async function shown(url: string, token: string): Promise<unknown> {
  const group = `${url}/firework/v4/events/identifier_groups/1042/_search`
  const answer = await post(group, { order: 'asc' }, { authorization: `Bearer ${token}` })
  expect(answer.status).toBe(200)
  return answer.json
}

test('a killed sandbox with a data folder comes back as it was, and knows its tokens', async () => {
  const folder = aFolder()
  const first = await startIn(folder)
  const headers = { authorization: first.api_keys[0]! }
  const grant = await ask(`${first.url}/tokens/generate`, { method: 'POST', headers })
  const { token } = grant.json as { token: string }
  await post(`${first.url}/_sandbox/events`, { count: 3 })
  const before = await shown(first.url, token)
  await first.kill()
  const second = await startIn(folder)
  const state = await ask(`${second.url}/_sandbox/state`)
  expect(state.json).toMatchObject({ events: 8 })
  expect(second.report_requests).toEqual(knownReportRequests)
  expect(await shown(second.url, token)).toEqual(before)
})

test('a data folder that holds something else is refused in one sentence', async () => {
  const folder = aFolder()
  const file = join(folder, 'history.jsonl')
  writeFileSync(file, 'not ours\n')
  const { code, out, err } = await tocsin('sandbox', ...anywhere, `--data=${folder}`)
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err.trim().split('\n')).toHaveLength(1)
  expect(err).toContain(`the sandbox cannot go on from ${file}: no sandbox wrote it; `)
  expect(readFileSync(file, 'utf8')).toBe('not ours\n')
})

import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDemoCredentials, type DemoCredentials } from '../../../src/cli/demo/sandbox.ts'
import type { SandboxCredential } from '../../../src/sandbox/credentials/history.ts'

const startMs = Date.UTC(2026, 0, 1)
let folder = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-demo-'))
})

afterEach(() => rmSync(folder, { recursive: true }))

function open({ file = 'credentials.jsonl', nowMs = startMs } = {}): DemoCredentials {
  const identifier = { id: 77, name: 'example.com' }
  return openDemoCredentials({ file: join(folder, file), seed: 1, nowMs, identifier })
}

function tell(credentials: DemoCredentials, count: number): SandboxCredential[] {
  return Array.from({ length: count }, () => credentials.next(startMs))
}

test('over any number of runs the credentials are those of a single run', () => {
  const whole = tell(open({ file: 'whole' }), 30)
  const parts = [10, 5, 15].flatMap((count) => tell(open(), count))
  expect(parts).toEqual(whole)
  expect(new Set(whole.map(({ id }) => id)).size).toBe(30)
})

test('those of earlier runs stand again, but for what is older than a month or was cut off', () => {
  const told = tell(open(), 10)
  appendFileSync(join(folder, 'credentials.jsonl'), '{"number":11,"cred')
  expect(open().earlier).toEqual(told)
  const later = open({ nowMs: startMs + 31 * 86_400_000 })
  expect(later.earlier).toEqual([])
  expect(told.map(({ id }) => id)).not.toContain(later.next(startMs).id)
})

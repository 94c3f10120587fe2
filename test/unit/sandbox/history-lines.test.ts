import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { createCredentialGenerator } from '../../../src/sandbox/credentials/generator.ts'
import { createGenerator } from '../../../src/sandbox/history/generator.ts'
import { type HistoryLine, openHistoryFile } from '../../../src/sandbox/state/history-file.ts'

const group = { id: 1, name: 'Größe', tenantId: 42, identifiers: [{ id: 7, name: '例え.example' }] }
const folder = mkdtempSync(join(tmpdir(), 'sandbox-history-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('a generator goes on from any place as one that never stopped', () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat(30), (seed, count) => {
      const whole = createGenerator(seed)
      for (let made = 0; made < count; made++) whole.make(group, made)
      const resumed = createGenerator(seed + 1, whole.state())
      for (let made = 0; made < 5; made++) {
        expect(resumed.make(group, made)).toEqual(whole.make(group, made))
      }
    }),
  )
})

test('a generator of credentials goes on from any place without an id or a pair of before', () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 1, max: 30 }), (seed, count) => {
      const first = createCredentialGenerator(seed)
      const identifier = { id: 7, name: 'example.com' }
      const before = Array.from({ length: count }, () => first.make(identifier, 0))
      const second = createCredentialGenerator(seed, first.state())
      const after = Array.from({ length: count }, () => second.make(identifier, 0))
      const names = new Set(before.map(({ identityName }) => identityName))
      expect(after.filter(({ identityName }) => names.has(identityName))).toEqual([])
      expect(after[0]!.id).toBeGreaterThan(before.at(-1)!.id)
    }),
  )
})

test('a file cut off at any byte behind its heading tells the lines before', async () => {
  const generator = createGenerator(3)
  const file = join(folder, 'cut.jsonl')
  const whole = await openHistoryFile(file)
  const events = Array.from({ length: 8 }, () => generator.make(group, 1000))
  whole.append(events.map((event): HistoryLine => ['event', event]))
  whole.close()
  const bytes = readFileSync(file)
  const heading = bytes.indexOf('\n') + 1
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: heading, max: bytes.length }), async (length) => {
      writeFileSync(file, bytes.subarray(0, length))
      const again = await openHistoryFile(file)
      again.append([['event', generator.make(group, 1000)]])
      again.close()
      const stood = bytes.subarray(heading, length).toString('latin1').split('\n').length - 1
      expect(again.stored.events).toEqual(events.slice(0, stood))
      const healed = await openHistoryFile(file)
      healed.close()
      expect(healed.stored.events).toHaveLength(stood + 1)
    }),
  )
})

test('a change is told with what it changes, and the last one holds', async () => {
  const file = join(folder, 'changed.jsonl')
  const written = await openHistoryFile(file)
  const event = createGenerator(1).make(group, 1000)
  written.append([
    ['events', { number: 1, seed: 5 }],
    ['event', event],
  ])
  written.append([['event changed', event.uid, { notes: 'one', groupIds: [] }]])
  written.append([['event changed', event.uid, { notes: 'two' }]])
  written.close()
  const read = await openHistoryFile(file)
  read.close()
  expect(read.stored).toEqual({
    events: [{ ...event, notes: 'two', groupIds: [] }],
    credentials: [],
    eventGenerator: { number: 1, seed: 5 },
    credentialGenerator: undefined,
  })
})

import { expect, test } from 'vitest'
import { itemLines, stateInWords } from '../../../src/cli/story.ts'
import type { Item } from '../../../src/ledger/records.ts'

const at = Date.UTC(2026, 10, 1, 12)
const later = Date.UTC(2026, 10, 1, 13)

function anItem(given: Partial<Item>): Item {
  return {
    index: 0,
    id: 'e1',
    sink: 'soc',
    destination: 'soc',
    severity: 'high',
    routes: ['urgent'],
    state: 'queued',
    heldFor: undefined,
    atMs: undefined,
    attempts: 0,
    repeatRisks: 0,
    replays: 0,
    createdAtMs: at,
    endedAtMs: undefined,
    history: [],
    ...given,
  }
}

const failed = {
  number: 1,
  atMs: at,
  outcome: 'retry',
  reason: 'unavailable',
  answer: 'HTTP 503',
  replica: 'r1',
}

const states: [Partial<Item>, string][] = [
  [{ state: 'queued' }, 'waiting for its turn since 2026-11-01 12:00:00 UTC'],
  [
    { state: 'held', heldFor: 'detail', atMs: later },
    'held for its full event, at the latest until 2026-11-01 13:00:00 UTC',
  ],
  [{ state: 'held', heldFor: 'orphaned' }, 'held: the running configuration has no sink "soc"'],
  [{ state: 'batch' }, 'in a sealed batch, on its way'],
  [{ state: 'sending', atMs: later }, 'being sent since 2026-11-01 13:00:00 UTC'],
  [
    { state: 'retrying', atMs: later, history: [failed] },
    'retrying at 2026-11-01 13:00:00 UTC because of unavailable: HTTP 503',
  ],
  [{ state: 'delivered', endedAtMs: later }, 'delivered 2026-11-01 13:00:00 UTC'],
  [
    { state: 'dead', endedAtMs: later, history: [failed] },
    'dead since 2026-11-01 13:00:00 UTC because of unavailable: HTTP 503',
  ],
  [
    { state: 'discarded', endedAtMs: later },
    'dead since 2026-11-01 13:00:00 UTC, and the letter discarded by an operator',
  ],
  [{ state: 'suppressed', endedAtMs: later }, 'suppressed 2026-11-01 13:00:00 UTC'],
  [{ state: 'diverted', endedAtMs: later }, 'diverted to another sink 2026-11-01 13:00:00 UTC'],
]

test.each(states)('an item that is %j reads as: %s', (given, words) => {
  expect(stateInWords(anItem(given))).toBe(words)
})

test('a recipient is named by address, and a lost answer is said', () => {
  const item = anItem({ sink: 'oncall', destination: 'oncall:ab12', repeatRisks: 2, replays: 1 })
  expect(itemLines(item, new Map([['oncall:ab12', 'ann@example.com']]))).toEqual([
    '  → oncall, ann@example.com, as high: waiting for its turn since 2026-11-01 12:00:00 UTC',
    '      2 answers lost: it may have arrived nevertheless',
    '      replayed 1 time by an operator',
  ])
})

test('what another side answered cannot write on the terminal', () => {
  const history = [{ ...failed, answer: '\u001B[2Jgone\nforged line' }]
  const lines = itemLines(anItem({ state: 'dead', endedAtMs: at, history }), new Map())
  expect(lines.join('')).not.toMatch(/\p{Cc}/u)
})

import { expect, test } from 'vitest'
import { itemLines, formatState } from '../../../src/cli/ledger/item-text.ts'
import type { Item, Suppression } from '../../../src/store/records.ts'

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
    sighting: 0,
    state: 'queued',
    heldFor: undefined,
    rule: undefined,
    groupId: undefined,
    messageId: undefined,
    raisedFrom: undefined,
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
  [{ state: 'queued' }, 'queued since 2026-11-01 12:00:00 UTC'],
  [
    { state: 'held', heldFor: 'detail', atMs: later },
    'held for its full event, at the latest until 2026-11-01 13:00:00 UTC',
  ],
  [{ state: 'held', heldFor: 'orphaned' }, 'held: the running configuration has no sink "soc"'],
  [{ state: 'batch' }, 'frozen in a message, on its way'],
  [{ state: 'sending', atMs: later }, 'sending since 2026-11-01 13:00:00 UTC'],
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
    { state: 'discarded', endedAtMs: later, rule: 'by ann' },
    'discarded 2026-11-01 13:00:00 UTC by ann',
  ],
  [{ state: 'group' }, 'grouped since 2026-11-01 12:00:00 UTC, for the next message of its group'],
  [{ state: 'digest' }, 'grouped since 2026-11-01 12:00:00 UTC, for the next digest'],
  [
    { state: 'held', heldFor: 'mute', rule: 'medium: night', atMs: later },
    'held because its route is muted (medium: night), at the latest until 2026-11-01 13:00:00 UTC',
  ],
  [{ state: 'held', heldFor: undefined, atMs: undefined }, 'held (no reason is known)'],
  [{ state: 'held', heldFor: 'mute' }, 'held because its route is muted (unknown)'],
  ...suppressions(),
  [
    { state: 'diverted', rule: 'to lake, by ann', endedAtMs: later },
    'diverted 2026-11-01 13:00:00 UTC to lake, by ann',
  ],
]

function suppressions(): [Partial<Item>, string][] {
  const words = {
    silence: 'silenced by c0ffee00',
    inhibition: 'inhibited by the rule c0ffee00',
    mute: 'dropped because its route is muted (c0ffee00)',
    shadow: 'recorded only: its route has mode: shadow',
    ignored: 'marked as ignored at the service',
    remediated: 'marked as remediated at the service',
    seen_again: 'seen again: the same login and secret came as c0ffee00',
    superseded: 'came back as c0ffee00 before it was sent, and goes as that',
  } satisfies Record<Suppression, string>
  return Object.entries(words).map(([heldFor, why]) => [
    { state: 'suppressed', heldFor, rule: 'c0ffee00', endedAtMs: later },
    `suppressed 2026-11-01 13:00:00 UTC: ${why}`,
  ])
}

test.each(states)('an item that is %j reads as: %s', (given, words) => {
  expect(formatState(anItem(given))).toBe(words)
})

test('a recipient is named by address, and a lost answer is said', () => {
  const item = anItem({ sink: 'oncall', destination: 'oncall:ab12', repeatRisks: 2, replays: 1 })
  expect(itemLines(item, new Map([['oncall:ab12', 'ann@example.com']]))).toEqual([
    '  → oncall, ann@example.com, as high: queued since 2026-11-01 12:00:00 UTC',
    '      2 answers lost: it may have arrived nevertheless',
    '      resent 1 time, last by an operator',
  ])
})

test('what another side answered cannot write on the terminal', () => {
  const history = [{ ...failed, answer: '\u001B[2Jgone\nforged line' }]
  const lines = itemLines(anItem({ state: 'dead', endedAtMs: at, history }), new Map())
  expect(lines.join('')).not.toMatch(/\p{Cc}/u)
})

/** The words of an item's history. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { itemLines } from '../../../src/cli/ledger/item-text.ts'
import type { Item, Suppression } from '../../../src/store/records.ts'
import { formatState, reasonText } from '../../../src/operator/item-words.ts'

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
    past: [],
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

test.each<[Partial<Item>, string]>([
  [
    { state: 'held', heldFor: 'detail', atMs: later },
    'held since 2026-11-01 12:00:00 UTC: waits for its full event, at the latest until 2026-11-01 13:00:00 UTC',
  ],
  [{ state: 'held', heldFor: undefined }, 'held since 2026-11-01 12:00:00 UTC: no reason is known'],
  [{ state: 'sending', atMs: later }, 'sending since 2026-11-01 13:00:00 UTC'],
  [
    { state: 'retrying', atMs: later, history: [failed] },
    'retrying since 2026-11-01 12:00:00 UTC: unavailable, nothing was accepted: 408, 425, 5xx, connection refused, DNS; HTTP 503, next try 2026-11-01 13:00:00 UTC',
  ],
  [
    { state: 'diverted', rule: 'to lake, by ann', endedAtMs: later },
    'diverted 2026-11-01 13:00:00 UTC: to lake, by ann',
  ],
])('an item that is %j reads as: %s', (given, words) => {
  expect(formatState(anItem(given))).toBe(words)
})

test('each reason not to send has words of its own, and names the rule', () => {
  const reasons: Record<Suppression, string> = {
    silence: 'a silence',
    inhibition: 'says more',
    mute: 'muted',
    shadow: 'shadow',
    ignored: 'ignored',
    remediated: 'remediated',
    seen_again: 'same login and secret',
    superseded: 'came back',
  }
  for (const [heldFor, word] of Object.entries(reasons)) {
    const said = formatState(
      anItem({ state: 'suppressed', heldFor, rule: 'c0ffee00', endedAtMs: at }),
    )
    expect(said).toContain(word)
    expect(said).toContain('c0ffee00')
  }
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

test('every reason that a script writes has words', () => {
  const folder = join(import.meta.dirname, '../../../src/redis/scripts')
  // what finds writes nothing
  const scripts = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const written = scripts
    .filter((file) => file.endsWith('.lua') && !/(?:^|\/)find-/.test(file))
    .flatMap((file) => [
      ...readFileSync(join(folder, file), 'utf8').matchAll(/\b(?:why|reason|r) = [^,\n]*/g),
    ])
    .flatMap(([line]) =>
      [...line.matchAll(/(?:[^=]= |and |or )'([a-z_]+)'/g)].map(([, word]) => word!),
    )
  expect(new Set(written).size).toBeGreaterThan(6)
  expect([...new Set(written)].filter((word) => reasonText(word) === null)).toEqual([])
})

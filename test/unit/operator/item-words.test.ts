/** The words of an item's history. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { itemLines } from '../../../src/cli/ledger/item-text.ts'
import { type Item, suppressions } from '../../../src/store/records.ts'
import { reasonText, sinkReasonWords } from '../../../src/operator/item-words.ts'

const at = Date.UTC(2026, 10, 1, 12)
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

/** Of items that ended unsent: what the ledger keeps of the reason, by its name. */
const unsent = [
  ...suppressions.map((name) => ({
    name,
    item: anItem({ state: 'suppressed', heldFor: name, rule: 'c0ffee00', endedAtMs: at }),
  })),
  ...[...Object.keys(sinkReasonWords), 'payload_expired', 'recipient_removed'].map((name) => ({
    name,
    item: anItem({ state: 'dead', endedAtMs: at, history: [{ ...failed, reason: name }] }),
  })),
]

test('each reason not to send has words of its own in `items show`, and names the rule', () => {
  for (const { name, item } of unsent) {
    const [said = ''] = itemLines(item, new Map())
    expect(said).toContain(reasonText(name) || `words for ${name}`)
    expect(said).toContain(item.rule ?? name)
  }
  expect(new Set(unsent.map(({ name }) => reasonText(name))).size).toBe(unsent.length)
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

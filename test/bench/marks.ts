import { randomBytes } from 'node:crypto'
import type { Book } from '../../src/ledger/book.ts'
import { runScript } from '../../src/redis/scripts.ts'

const batchLength = 5_000

/** Remembers `count` random marks as of a week so long ago; oldest week first. */
export async function writeMarks(book: Book, count: number, weeksAgo = 0): Promise<void> {
  let held = 0
  const before = await heldNow(book, weeksAgo)
  for (let left = count; left > 0; left -= batchLength) {
    const marks = randomMarks(Math.min(left, batchLength))
    held = Number(await run(book, [weeksAgo, book.horizonMs, ...marks]))
  }
  if (held - before !== count) throw new Error(`${held - before} of ${count} marks are there`)
}

/** An empty batch opens the week and says what it holds. */
async function heldNow(book: Book, weeksAgo: number): Promise<number> {
  return Number(await run(book, [weeksAgo, book.horizonMs]))
}

/** The script lies beside this file; its name is relative to the folder of the daemon's scripts. */
function run(book: Book, args: (string | number)[]): Promise<unknown> {
  return runScript(book.redis, '../../../test/bench/write-marks', [book.key()], args)
}

/** As digests give them: 64 bits as a signed decimal, and 32 others. */
function randomMarks(count: number): (string | number)[] {
  const bytes = randomBytes(12 * count)
  return Array.from({ length: count }, (_none, i) => [
    bytes.readBigInt64BE(12 * i).toString(),
    bytes.readUInt32BE(12 * i + 8),
  ]).flat()
}

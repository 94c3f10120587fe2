/** Changes an input a little, by chance that can be repeated. */
import type { Random } from '../../../src/sandbox/options.ts'

export interface Mutator {
  mutate(input: Uint8Array, corpus: readonly Uint8Array[]): Uint8Array
}

const longest = 2048

/** Characters at which parsers go wrong: hidden, turning, stacking, ending, and half ones. */
const nasty = [
  '\0',
  '\n',
  '\r\n',
  '\t',
  ' ',
  '\u0085',
  '\u2028',
  '\u200B',
  '\u202E',
  '\u2066',
  '\uFEFF',
  '"',
  "'",
  '`',
  '\\',
  '<',
  '>',
  '&',
  '{',
  '}',
  '[',
  ']',
  '(',
  ')',
  '${',
  '%',
  '=',
  '+',
  '@',

  '://',
  '.com',
  '．',
  '。',
  '\u0301\u0301\u0301\u0301\u0301',
  '\u{E0041}',
  '😀',
  '-1',
  '1e999',
].map((text) => Buffer.from(text))
const halfCharacter = Buffer.from([0xed, 0xa0, 0x80])
const notable = [0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x20, 0x30, 0x39, 0x41, 0x7a]

type Change = (input: Buffer, random: Random) => Buffer

function splice(input: Buffer, at: number, removed: number, inserted: Uint8Array): Buffer {
  return Buffer.concat([input.subarray(0, at), inserted, input.subarray(at + removed)])
}

function somewhere({ length }: Buffer, random: Random): number {
  return random.int(0, length)
}

const changes: Change[] = [
  (input, random) => {
    const at = somewhere(input, random)
    return splice(input, at, 1, Buffer.from([(input[at] ?? 0) ^ (1 << random.int(0, 7))]))
  },
  (input, random) => splice(input, somewhere(input, random), 1, Buffer.from([random.int(0, 255)])),
  (input, random) =>
    splice(input, somewhere(input, random), 1, Buffer.from([random.pick(notable)])),
  (input, random) => {
    const at = somewhere(input, random)
    return splice(
      input,
      at,
      1,
      Buffer.from([((input[at] ?? 0) + random.pick([-1, 1]) + 256) % 256]),
    )
  },
  (input, random) => splice(input, somewhere(input, random), random.int(1, 16), Buffer.alloc(0)),
  (input, random) => splice(input, somewhere(input, random), 0, random.pick(nasty)),
  (input, random) => splice(input, somewhere(input, random), 0, halfCharacter),
  (input, random) => {
    const bytes = Buffer.from(Array.from({ length: random.int(1, 8) }, () => random.int(0, 255)))
    return splice(input, somewhere(input, random), 0, bytes)
  },
  (input, random) => {
    const at = somewhere(input, random)
    const copied = input.subarray(at, at + random.int(1, 32))
    const times = random.chance(0.1) ? random.int(2, 64) : 1
    return splice(input, somewhere(input, random), 0, Buffer.concat(Array(times).fill(copied)))
  },
  (input, random) => input.subarray(0, somewhere(input, random)),
]

export function createMutator(random: Random, dictionary: readonly string[]): Mutator {
  const words = dictionary.map((word) => Buffer.from(word))

  function change(input: Buffer, corpus: readonly Uint8Array[]): Buffer {
    if (words.length > 0 && random.chance(0.2)) {
      const removed = random.chance(0.5) ? random.int(1, 12) : 0
      return splice(input, somewhere(input, random), removed, random.pick(words))
    }
    if (random.chance(0.1)) return crossed(input, Buffer.from(random.pick(corpus)))
    return random.pick(changes)(input, random)
  }

  function crossed(input: Buffer, other: Buffer): Buffer {
    const from = somewhere(other, random)
    const part = other.subarray(from, from + random.int(1, 64))
    return splice(input, somewhere(input, random), random.int(0, part.length), part)
  }

  return {
    mutate(input, corpus) {
      let mutated: Buffer = Buffer.from(input)
      for (let left = random.pick([1, 1, 1, 2, 3, 5]); left > 0; left -= 1)
        mutated = change(mutated, corpus)
      return mutated.subarray(0, longest)
    },
  }
}

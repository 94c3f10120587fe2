/** How many texts with a secret are withheld, and how many ordinary ones are shown. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { withholds } from '../../src/masking/masking.ts'

interface Sample {
  lang: string
  kind: 'secret' | 'ordinary'
  family: string
  text: string
}

function readCorpus(name: string): Sample[] {
  const file = new URL(`../fixtures/masking/${name}-corpus.jsonl`, import.meta.url)
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line) as Sample)
}

const isWithheld = ({ text }: Sample): boolean => withholds(text) !== null

function percent(part: number, all: number): number {
  return Math.round((1_000 * part) / all) / 10
}

const hard = readCorpus('hard')

/**
 * The signs were tuned to the first corpus. Somebody who had not seen them wrote each of the others; the
 * third has texts that are hard to judge. At first sight 89.4 % of the second's secrets and 81.2 % of
 * the third's were withheld, and 74.8 % and 73.2 % of their ordinary texts shown. Of the third only the
 * first line and those with even numbers were read while the signs were mended.
 */
const corpora = {
  own: readCorpus('own'),
  blind: readCorpus('blind'),
  hard,
  'hard, unread': hard.filter((_, index) => index > 0 && index % 2 === 0),
}

describe.each([
  { name: 'own', count: [468, 291], least: { withheld: 99, shown: 85 } },
  { name: 'blind', count: [379, 202], least: { withheld: 99, shown: 85 } },
  { name: 'hard', count: [250, 250], least: { withheld: 90, shown: 86 } },
  { name: 'hard, unread', count: [121, 128], least: { withheld: 81, shown: 78 } },
] as const)('in the corpus $name', ({ name, count, least }) => {
  const corpus = corpora[name]
  const secrets = corpus.filter(({ kind }) => kind === 'secret')
  const ordinary = corpus.filter(({ kind }) => kind === 'ordinary')

  test(`at least ${least.withheld} % of the texts with a secret are withheld`, () => {
    const withheld = secrets.filter(isWithheld)
    const share = percent(withheld.length, secrets.length)
    process.stdout.write(`${name}: ${share} % of ${secrets.length} secrets withheld\n`)
    expect(share).toBeGreaterThanOrEqual(least.withheld)
  })

  test(`at least ${least.shown} % of the ordinary texts are shown`, () => {
    const shown = ordinary.filter((one) => !isWithheld(one))
    const share = percent(shown.length, ordinary.length)
    process.stdout.write(`${name}: ${share} % of ${ordinary.length} ordinary texts shown\n`)
    expect(share).toBeGreaterThanOrEqual(least.shown)
  })

  test('there are as many texts of both kinds as SECURITY.md says, in ten languages and more', () => {
    expect([secrets.length, ordinary.length]).toEqual(count)
    expect(new Set(corpus.map(({ lang }) => lang)).size).toBeGreaterThan(10)
    expect(new Set(corpus.map(({ text }) => text)).size).toBe(corpus.length)
  })
})

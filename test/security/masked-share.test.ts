/** How much of what leaks show is masked, and how much that is no secret is left alone. */
import { describe, expect, test } from 'vitest'
import { maskText } from '../../src/masking/masking.ts'
import {
  harmlessTexts,
  heldOutHarmless,
  heldOutSecrets,
  leaks,
  plantSecrets,
  templateCount,
  type Planted,
} from './leak-corpus.ts'

function leaked(planted: readonly Planted[]): string[] {
  return planted
    .filter((one) => leaks(one, maskText(one.text, one.isDump)))
    .map(({ template, secret }) => `${secret} in ${JSON.stringify(template)}`)
}

function harmed(texts: readonly string[]): string[] {
  return texts.filter((text) => maskText(text) !== text)
}

function share(part: number, all: number): string {
  return `${((100 * part) / all).toFixed(1)} %`
}

/** In these a secret that holds a separator may stay visible (SECURITY.md); in no other template. */
const weak = ['"joe.doe:§"', String.raw`"PASSWORD\t§"`]

describe.each([
  ['templates that the masks were made with', plantSecrets(500), harmlessTexts(500)],
  [
    'templates written after the masks',
    plantSecrets(500, heldOutSecrets),
    harmlessTexts(500, heldOutHarmless),
  ],
])('in %s', (name, planted, texts) => {
  test('no leaked password reaches Redis or a sink: 99 % of 500 secrets have no four characters left', () => {
    const visible = leaked(planted)
    process.stdout.write(`${name}: ${share(500 - visible.length, 500)} of 500 secrets masked\n`)
    expect(visible.slice(5)).toEqual([])
    const unexpected = visible.filter((one) => !weak.some((template) => one.endsWith(template)))
    expect(unexpected).toEqual([])
  })

  test('analysts can read what holds no secret: 500 texts stay as they are', () => {
    const changed = harmed(texts)
    process.stdout.write(`${name}: ${share(changed.length, 500)} of 500 harmless texts harmed\n`)
    expect(changed).toEqual([])
  })
})

test('the corpus is many texts, and a mask that does nothing fails it', () => {
  expect(templateCount).toBeGreaterThanOrEqual(120)
  const planted = plantSecrets(500)
  expect(planted.filter((one) => leaks(one, one.text)).length).toBeGreaterThan(490)
  expect(new Set(planted.map(({ text }) => text)).size).toBeGreaterThan(480)
})

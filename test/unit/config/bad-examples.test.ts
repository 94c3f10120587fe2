import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ConfigError, formatMistake, type Mistake } from '../../../src/config/config.ts'
import { loadConfig } from '../../../src/config/load.ts'

const fixtures = join(import.meta.dirname, '../../fixtures/config')
const folder = join(fixtures, 'bad')
const examples = readdirSync(folder)
  .filter((file) => file.endsWith('.yaml'))
  .map((file) => file.replace('.yaml', ''))

/** Set where an example speaks of a variable. */
const env = { EMPTY: '', WORD: 'seven' }

function mistakesIn(example: string): readonly Mistake[] {
  try {
    loadConfig({ path: join(folder, `${example}.yaml`), env })
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes
    throw error
  }
  return []
}

/** As the operator reads it, from inside the folder of the examples. */
function lines(mistakes: readonly Mistake[]): string {
  const text = mistakes.map((mistake) => `${formatMistake(mistake)}\n`).join('')
  return text.replaceAll(`${folder}/`, '').replaceAll(`${fixtures}/`, '../')
}

test.each(examples)('%s is refused with the lines beside it, each with a remedy', (example) => {
  const mistakes = mistakesIn(example)
  expect(lines(mistakes)).toBe(readFileSync(join(folder, `${example}.expected.txt`), 'utf8'))
  expect(lines(mistakes)).not.toMatch(/hunter2|key-from-a-file|not\*base64/)
  for (const { problem, remedy, line, column } of mistakes) {
    expect([problem, remedy]).not.toContain('')
    expect(Math.min(line, column)).toBeGreaterThan(0)
  }
})

test('every example has lines beside it, and there are many', () => {
  const expected = readdirSync(folder).filter((file) => file.endsWith('.expected.txt'))
  expect(expected.map((file) => file.replace('.expected.txt', ''))).toEqual(examples)
  expect(examples.length).toBeGreaterThan(25)
})

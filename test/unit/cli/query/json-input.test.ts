import fc from 'fast-check'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { readJsonObject } from '../../../../src/cli/api/api-command.ts'
import { createTerminal } from '../../../../src/cli/terminal.ts'
import { systemClock } from '../../../../src/lib/clock.ts'

function read(text: string): Promise<unknown> {
  const streams = [new PassThrough(), new PassThrough(), new PassThrough()] as const
  const [input, output, errors] = streams
  input.end(text)
  const context = {
    env: {},
    terminal: createTerminal({ input, output, errors }),
    stop: new AbortController().signal,
    reloads: new EventTarget(),
    clock: systemClock,
    exitCode: 0,
  }
  return readJsonObject(context, '-')
}

test.each([
  ['', '1:1'],
  ['{"a": 1,}', '1:9'],
  ['{\n  "a": hush\n}', '2:8'],
  ['{"a": "hush', '1:12'],
  ['{"a": 1} x', '1:10'],
  ['{"a": "b\\x"}', '1:10'],
])('%j is no JSON from %s on, and is not quoted', async (text, place) => {
  await expect(read(text)).rejects.toMatchObject({ message: `standard input:${place}: not JSON` })
})

test('a list or a text is no object', async () => {
  await expect(read('[]')).rejects.toThrow('standard input: not a JSON object')
  await expect(read('"hush"')).rejects.toThrow(/^standard input: not a JSON object; write/)
})

test('an object is read, with the mark that some editors write before it', async () => {
  await expect(read('\uFEFF{"a": [1]}')).resolves.toEqual({ a: [1] })
})

test('what stands before the place that is named is the beginning of some JSON', async () => {
  await fc.assert(
    fc.asyncProperty(fc.json(), fc.nat(), fc.constantFrom('}', '?', ','), async (json, at, bad) => {
      const offset = at % (json.length + 1)
      const text = json.slice(0, offset) + bad + json.slice(offset)
      fc.pre(!isJson(text) && !json.includes('\\'))
      const error: unknown = await read(text).catch((thrown: unknown) => thrown)
      const [, column] = /:1:(\d+): not JSON$/.exec(String(error)) ?? []
      expect(Number(column)).toBeGreaterThan(offset)
    }),
  )
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

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
  ['', ''],
  ['{"a": 1,}', ':1:9'],
  ['{\n  "a": 1 hush\n}', ':2:10'],
  ['{"a": "hush', ':1:12'],
])('%j is no JSON, and is not quoted', async (text, place) => {
  await expect(read(text)).rejects.toMatchObject({ message: `standard input${place}: not JSON` })
})

test('a list or a text is no object', async () => {
  await expect(read('[]')).rejects.toThrow('standard input: not a JSON object')
  await expect(read('"hush"')).rejects.toThrow(/^standard input: not a JSON object; write/)
})

test('an object is read, with the mark that some editors write before it', async () => {
  await expect(read('\uFEFF{"a": [1]}')).resolves.toEqual({ a: [1] })
})

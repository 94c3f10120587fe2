import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { createTerminal, Interruption } from '../../../src/cli/terminal.ts'

function streams(isTTY: boolean) {
  const make = (): PassThrough & { isTTY?: boolean } =>
    Object.assign(new PassThrough(), isTTY ? { isTTY } : {})
  return { input: make(), output: make(), errors: make() }
}

const written = (stream: PassThrough): string => String(stream.read() ?? '')

test('a pipe gets no colour, no progress and no question', async () => {
  const pipes = streams(false)
  const terminal = createTerminal(pipes)
  terminal.progress('1 of 2')
  expect(terminal.paint('red', 'late')).toBe('late')
  expect(await terminal.confirm('Go on?')).toBeUndefined()
  expect(written(pipes.errors)).toBe('')
})

test.each([
  ['y', true],
  ['YES', true],
  ['n', false],
  ['', false],
  ['yesterday', false],
])('on a terminal "%s" answers %s', async (answer, isYes) => {
  const tty = streams(true)
  const asked = createTerminal(tty).confirm('Go on?')
  tty.input.write(`${answer}\r`)
  expect(await asked).toBe(isYes)
  expect(written(tty.errors)).toContain('Go on? [y/N]')
})

test('who closes the input instead of answering has not said yes', async () => {
  const tty = streams(true)
  const asked = createTerminal(tty).confirm('Go on?')
  tty.input.end()
  expect(await asked).toBe(false)
})

test('Ctrl-C instead of an answer is an interruption', async () => {
  const tty = streams(true)
  const terminal = createTerminal(tty)
  for (const ask of ['confirm', 'askSecret'] as const) {
    const asked = terminal[ask]('Go on?')
    tty.input.write('\u0003')
    await expect(asked).rejects.toThrow(Interruption)
    expect(written(tty.errors)).toMatch(/\n$/)
  }
})

test('a secret is typed unseen, whichever of the outputs is redirected', async () => {
  for (const redirected of ['output', 'errors'] as const) {
    const tty = Object.assign(streams(true), { [redirected]: new PassThrough() })
    const asked = createTerminal(tty).askSecret('secret:')
    tty.input.write('hush\r')
    expect(await asked).toBe('hush')
    const seen = redirected === 'output' ? tty.errors : tty.output
    expect([written(seen), written(tty[redirected])]).toEqual(['secret: \n', ''])
  }
})

test('nobody is asked for a secret who cannot see the question', async () => {
  const { input } = streams(true)
  const terminal = createTerminal({ ...streams(false), input })
  await expect(terminal.askSecret('secret:')).rejects.toThrow('give it on standard input')
})

test('nothing is printed any more once standard output is broken', async () => {
  const pipes = streams(false)
  const terminal = createTerminal(pipes)
  const said: string[] = []
  pipes.output.on('data', (chunk) => said.push(String(chunk)))
  terminal.print('found')
  pipes.output.emit('error', new Error('EPIPE'))
  terminal.print('lost')
  expect(terminal.outputClosed.aborted).toBe(true)
  expect(said.join('')).toBe('found\n')
})

test('progress is one line that is written over, and goes without a trace', () => {
  const tty = streams(true)
  const terminal = createTerminal(tty)
  terminal.progress('')
  expect(written(tty.errors)).toBe('')
  terminal.progress('1 of 2')
  terminal.progress('')
  expect(written(tty.errors)).toBe('\r\u001B[K1 of 2\r\u001B[K')
})

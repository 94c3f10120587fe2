import { PassThrough } from 'node:stream'
import { CommanderError } from 'commander'
import { expect, test } from 'vitest'
import { reportError } from '../../../src/cli/program.ts'
import { CommandError, createTerminal, Interruption } from '../../../src/cli/terminal.ts'
import { ConfigError } from '../../../src/config/config.ts'
import { StoreError } from '../../../src/redis/health.ts'
import { SinkError } from '../../../src/sinks/sink.ts'
import { UpstreamError } from '../../../src/upstream/error.ts'

function reported(error: unknown): { code: number; said: string } {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const code = reportError(error, createTerminal({ input, output, errors }))
  return { code, said: String(errors.read() ?? '') }
}

const errors: [string, Error, number][] = [
  ['an UpstreamError', new UpstreamError('rejected', 'it is refused'), 1],
  ['a SinkError', new SinkError('gone', 'it is gone'), 1],
  ['a Redis that is away', new StoreError('unreachable', 'it is away'), 1],
  ['an unsafe Redis', new StoreError('unsafe', 'it forgets'), 2],
  ['a mistake in a command', new CommandError('mistake', 'there is no such feed'), 2],
  ['a command that the world refuses', new CommandError('refused', 'it is taken'), 1],
  ['a ConfigError', new ConfigError([]), 2],
]

test.each(errors)('%s is one plain message', (_name, error, code) => {
  expect(reported(error)).toEqual({ code, said: `${error.message}\n` })
})

test('a failure that may be of the key, or of the way there, says where to look', () => {
  const { said } = reported(new UpstreamError('unavailable', 'it is down'))
  expect(said).toBe('it is down\ntocsin doctor says more\n')
})

test('several wrong fields stand below each other, each once', () => {
  const details = [
    { loc: 'name', msg: 'empty' },
    { loc: '', msg: 'odd' },
  ]
  const error = new UpstreamError('invalid', 'not sent: name: empty; odd', { details })
  expect(reported(error)).toEqual({
    code: 2,
    said: 'not sent: 2 fields are wrong\n  name: empty\n  odd\n',
  })
})

test('an interruption is told by its code alone', () => {
  expect(reported(new Interruption())).toEqual({ code: 130, said: '' })
})

test('a bug of ours shows its stack and says whose it is', () => {
  const { code, said } = reported(new Error('off by one'))
  expect(said).toMatch(/^this is a defect of Tocsin; .*\nError: off by one\n {4}at /)
  expect(code).toBe(1)
})

test.each([
  [new CommanderError(1, 'commander.unknownOption', ''), 2],
  [new CommanderError(0, 'commander.helpDisplayed', ''), 0],
  [new CommanderError(1, 'commander.help', ''), 2],
])('bad arguments end with 2, help that was asked for with 0', (error, code) => {
  expect(reported(error)).toEqual({ code, said: '' })
})

import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { isPassword } from '../../../src/lib/password-hash.ts'
import type { Ended } from './tocsin.ts'

/** `typed`: on a terminal, one answer for each question; else what a pipe holds. */
async function hash(typed: string | readonly string[], ...args: string[]): Promise<Ended> {
  const isTTY = typeof typed !== 'string'
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  if (isTTY) for (const stream of [input, errors]) Object.assign(stream, { isTTY })
  const answers = isTTY ? [...typed] : []
  let err = ''
  errors.on('data', (chunk) => {
    err += String(chunk)
    if (/:\s$/.test(String(chunk))) setImmediate(() => input.write(`${answers.shift()}\r`))
  })
  if (!isTTY) input.end(typed)
  const { signal: stop } = new AbortController()
  const code = await runProgram(['users', 'hash', ...args], { input, output, errors, stop })
  output.end()
  return { code, out: await text(output), err }
}

test('a password that is typed twice, unseen, becomes its hash and nothing else', async () => {
  const { code, out, err } = await hash(['a whole sentence', 'a whole sentence'])
  expect(code).toBe(0)
  expect(out).toMatch(/^\$scrypt\$ln=17,r=8,p=1\$\S+\n$/)
  expect(await isPassword('a whole sentence', out.trim())).toBe(true)
  expect(err).not.toContain('sentence')
})

test.each([
  ['a whole sentence\n', []],
  ['a whole sentence', ['-']],
])('a password from a pipe is taken without its line end', async (typed, args) => {
  const { out } = await hash(typed, ...args)
  expect(await isPassword('a whole sentence', out.trim())).toBe(true)
})

test.each([
  [['a whole sentence', 'a whole sentense'], 'the two are not the same'],
  [['elevenchars', 'elevenchars'], 'take 12 characters or more'],
  ['elevenchars\n', 'take 12 characters or more'],
  ['', 'take 12 characters or more'],
  ['a whole\nsentence', 'more than one line'],
])('%j is refused, and not repeated', async (typed, problem) => {
  const { code, out, err } = await hash(typed)
  expect([code, out]).toEqual([2, ''])
  expect(err).toContain(problem)
  expect(err).not.toMatch(/sentence|eleven/)
})

import { PassThrough, Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { watchStandardOutput } from '../../../src/cli/program.ts'

/** Fails as a file or a pipe does, a moment after it was written to. */
function failing(code: string): Writable {
  const error = Object.assign(new Error(code), { code })
  return new Writable({ write: (_chunk, _encoding, done) => void setImmediate(done, error) })
}

async function endOn(output: Writable, code: number): Promise<{ code: number; said: string }> {
  const errors = new PassThrough()
  const watched = watchStandardOutput({ output, errors })
  output.write('found\n')
  return { code: await watched.end(code), said: String(errors.read() ?? '') }
}

const lost = 'standard output cannot be written (ENOSPC); what it has is not whole\n'

test.each([
  ['all of it was written', new PassThrough(), 0, { code: 0, said: '' }],
  ['its reader has seen enough', failing('EPIPE'), 0, { code: 0, said: '' }],
  ['its reader is gone and the command failed', failing('EPIPE'), 2, { code: 2, said: '' }],
  ['the disk is full', failing('ENOSPC'), 0, { code: 1, said: lost }],
  ['the disk is full and the command failed', failing('ENOSPC'), 2, { code: 2, said: lost }],
])('the exit code where %s', async (_what, output, code, ended) => {
  expect(await endOn(output, code)).toEqual(ended)
})

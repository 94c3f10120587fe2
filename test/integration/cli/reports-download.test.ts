/** `reports download`: a report as a file that is there whole or not at all. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import type { Sandbox } from '../../../src/sandbox/sandbox.ts'
import { redisForTests } from '../../support/ledger.ts'
import { tokenOf } from '../sandbox/client.ts'
import { aServiceScene } from './service-scene.ts'
import { aFile, environment } from './tocsin.ts'

const tests = redisForTests()
const main = join(import.meta.dirname, '../../../src/main.ts')
const path = '/firework/v4/threat_flow/reports/9001/download'
const download = ['reports', 'download', '9001'] as const

/** As the service serves it, without Tocsin between. */
async function served(sandbox: Sandbox, query = ''): Promise<Buffer> {
  const headers = { authorization: `Bearer ${await tokenOf(sandbox)}` }
  const response = await fetch(`${sandbox.url}${path}${query}`, { headers })
  expect(response.status).toBe(200)
  return Buffer.from(await response.arrayBuffer())
}

/** A folder with one file `old`; the path of a file in it that is not there. */
function aTarget(): string {
  return join(dirname(aFile('old', 'old')), 'report')
}

test.each([
  ['docx', []],
  ['pdf', ['--format=pdf']],
])('the file is the %s that the service serves, for its owner alone: %j', async (format, args) => {
  const { run, sandbox } = await aServiceScene(tests, { backlog: 40 })
  const out = aTarget()
  const expected = await served(sandbox, `?format=${format}`)
  expect(await run(...download, ...args, '--out', out)).toEqual({
    code: 0,
    out: `report 9001 is in ${out} (${expected.length} bytes)\n`,
    err: '',
  })
  expect(readFileSync(out).equals(expected)).toBe(true)
  expect(statSync(out).mode & 0o777).toBe(0o600)
  expect(readdirSync(dirname(out))).toEqual(['old', 'report'])
})

test('what is there under this name stays, a link that leads nowhere too', async () => {
  const { run } = await aServiceScene(tests)
  const [file, link] = [aFile('report', 'mine'), aTarget()]
  symlinkSync('nowhere', link)
  for (const out of [file, link]) {
    const err = `--out ${out}: there is such a file already; name another\n`
    expect(await run(...download, '--out', out)).toEqual({ code: 1, out: '', err })
  }
  expect(readFileSync(file, 'utf8')).toBe('mine')
  expect(readlinkSync(link)).toBe('nowhere')
  expect(readdirSync(dirname(link))).toEqual(['old', 'report'])
})

test.each([
  [{ status: 404, message: 'no such report' }, /^report 9001: .*\(404\)/],
  [
    { status: 404, body: 'text', message: 'Not Found' },
    /; this server may not have GET .*download/,
  ],
  [{ status: 200, body: 'text', message: 'no' }, /^the answer is no file of the format docx$/m],
] as const)('where the service answers by %j there is no file', async (answer, said) => {
  const { run, sandbox } = await aServiceScene(tests)
  sandbox.faults.add({ on: path, effect: 'status', ...answer })
  const file = aTarget()
  const { code, out, err } = await run(...download, '--out', file)
  expect(err).toMatch(said)
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(readdirSync(dirname(file))).toEqual(['old'])
})

/** A limit on the size of files stands for a full disk: the write fails part of the way. */
test.skipIf(!existsSync('/bin/sh'))(
  'a file that cannot be written whole leaves nothing',
  async () => {
    const { config } = await aServiceScene(tests, { backlog: 40 })
    const out = aTarget()
    const words = [...download, '--out', out, '--config', config]
    const limited = ['-c', 'ulimit -f 1; exec "$0" "$@"', process.execPath, main, ...words]
    const child = spawn('/bin/sh', limited, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: environment.PATH },
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [[code], said] = await Promise.all([once(child, 'close'), text(child.stderr)])
    expect(said).toBe(`--out ${out}: cannot be written (EFBIG)\n`)
    expect(code).toBe(1)
    expect(readdirSync(dirname(out))).toEqual(['old'])
  },
)

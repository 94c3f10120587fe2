import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { aFile, startTocsin, tocsin, tocsinProcess } from './tocsin.ts'

test('--write-config writes a configuration that works, with a Redis of its own, and prints none', async () => {
  const file = join(aFile('folder', ''), '../sandbox.yaml')
  const args = ['sandbox', '--port=0', '--smtp-port=0', '--rate=0']
  const { child, says, ended } = startTocsin(...args, '--write-config', file)
  await says('Ctrl-C')
  const doctor = await tocsin('doctor', '--send', '--config', file)
  expect(doctor.out.match(/took a TEST message/g)).toHaveLength(5)
  expect(doctor.code).toBe(0)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const written = parse(readFileSync(file, 'utf8')) as { redis: unknown }
  expect(written.redis).toEqual({ embedded: './data-sandbox' })
  child.kill('SIGTERM')
  const { out } = await ended
  expect(out).toContain(`tocsin run --config ${file}`)
  expect(out).not.toMatch(/^(?:accounts|sinks|route):/m)
  const again = startTocsin(...args, '--write-config', file)
  await again.says('Ctrl-C') // what a sandbox wrote, another one may replace
})

test('--write-config replaces no file of anybody else', async () => {
  const mine = aFile('tocsin.yaml', 'accounts: {}\n')
  const args = ['--port=0', '--smtp-port=0', '--write-config', mine]
  const { code, out, err } = await tocsin('sandbox', ...args)
  expect({ code, out }).toEqual({ code: 2, out: '' })
  expect(err).toContain('is not of a sandbox; name another file')
  expect(readFileSync(mine, 'utf8')).toBe('accounts: {}\n')
})

test('the sandbox names a port that is taken', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as { port: number }
  const { code, err } = await tocsinProcess('sandbox', `--port=${port}`, '--smtp-port=0')
  expect(err).toContain(`at the ports ${port} and 0 (EADDRINUSE)`)
  expect(code).toBe(1)
})

/** A debugger reads every secret of a process, and Node opens one for whoever may send a signal. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startTocsin } from '../integration/cli/tocsin.ts'

test('SIGUSR1 opens no debugger, and the process goes on', async () => {
  const running = startTocsin('sandbox', '--port', '0', '--smtp-port', '0')
  await running.says('http://')
  const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(running.soFar()) ?? []
  running.child.kill('SIGUSR1')
  await sleep(500) // Node says within milliseconds that one listens
  expect((await fetch(`${url}/_sandbox/state`)).status).toBe(200)
  running.child.kill('SIGTERM')
  const { code, err } = await running.ended
  expect(err).not.toContain('Debugger')
  expect(code).toBe(0)
})

test('nor does it while the program, which takes a second to load, is not loaded yet', () => {
  const hook = `
    import { registerHooks } from 'node:module'
    registerHooks({
      load(url, context, next) {
        if (url.endsWith('/cli/program.ts')) console.log(process.listenerCount('SIGUSR1'), 'listens')
        return next(url, context)
      },
    })`
  const main = join(import.meta.dirname, '../../src/main.ts')
  const args = ['--import', `data:text/javascript,${encodeURIComponent(hook)}`, main, '--version']
  const said = execFileSync(process.execPath, args, { encoding: 'utf8' })
  expect(said).toMatch(/^1 listens\n\d+\.\d+\.\d+(?:-dev)?\n$/)
})

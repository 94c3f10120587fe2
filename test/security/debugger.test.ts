/** A debugger reads every secret of a process, and Node opens one for whoever may send a signal. */
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

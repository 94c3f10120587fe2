/** The pretend service, a Redis, and the command line as somebody uses it who asks the service by hand. */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import type { RedisForTests } from '../../support/ledger.ts'
import { aFile, type Ended } from './tocsin.ts'

export interface ServiceScene {
  sandbox: Sandbox
  /** Of its keys in Redis. */
  prefix: string
  /** Path of the configuration. */
  config: string
  /** How long the commands waited before they asked again, ms; none of it really passed. */
  waits: number[]
  /** The command line on this service, `--config` added. */
  run: (...args: string[]) => Promise<Ended>
  /** With a standard input that is no terminal. */
  runGiven: (input: string, ...args: string[]) => Promise<Ended>
  /** On a terminal, at which this is typed. */
  runAt: (typed: string, ...args: string[]) => Promise<Ended>
  /** Until it is asked to stop. */
  runUntil: (stop: AbortSignal, ...args: string[]) => Promise<Ended>
  /** What reached the service, the requests for tokens and about them left out. */
  sent: () => { method: string; path: string; body: unknown }[]
}

interface SceneOptions extends SandboxOptions {
  /** Changes the configuration. */
  change?: (text: string) => string
}

let prefixes = 0

/** Gone after the test. */
export async function aServiceScene(
  tests: RedisForTests,
  { change = (same) => same, ...options }: SceneOptions = {},
): Promise<ServiceScene> {
  const sandbox = await startSandbox({ enforceLimits: false, ...options })
  onTestFinished(() => sandbox.close())
  const path = aFile('tocsin.yaml', change(configText(tests, sandbox)))
  const never = new AbortController().signal
  const waits: number[] = []
  const clock = { ...systemClock, sleep: async (ms: number) => void waits.push(ms) }
  const runner = (type: (input: PassThrough) => void, isTerminal: boolean, stop = never) => {
    return async (...args: string[]): Promise<Ended> => {
      const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
      if (isTerminal) for (const stream of [input, errors]) Object.assign(stream, { isTTY: true })
      type(input)
      const streams = { input, output, errors }
      const code = await runProgram([...args, '--config', path], { ...streams, stop, clock })
      output.end()
      errors.end()
      return { code, out: await text(output), err: await text(errors) }
    }
  }
  return {
    sandbox,
    prefix: `asked${prefixes}`,
    config: path,
    waits,
    run: runner((input) => input.end(), false),
    runGiven: (given, ...args) => runner((input) => input.end(given), false)(...args),
    runAt: (typed, ...args) => runner((input) => input.write(`${typed}\n`), true)(...args),
    runUntil: (stop, ...args) => runner((input) => input.end(), false, stop)(...args),
    sent: () =>
      sandbox.requests
        .filter((request) => /^\/(firework|astp)/.test(request.path))
        .map(({ method, path: at, body }) => ({ method, path: at, body })),
  }
}

function configText(tests: RedisForTests, sandbox: Sandbox): string {
  prefixes += 1
  return `redis: { url: "${tests.server.url}", prefix: asked${prefixes} }
accounts:
  main:
    base_url: "${sandbox.url}"
    link_hosts: [app.example.com]
    api_key: ${sandbox.apiKeys[0]}
    limits: { search: 100, basic: 100 }
feeds:
  brand: { type: events, identifier_group: 1042 }
sinks:
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush" }
route: { sinks: [soc] }
`
}

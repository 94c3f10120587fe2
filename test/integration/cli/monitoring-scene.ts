/** A sandbox, a configuration that asks it, and a monitoring file, for `assets apply` and `feeds import`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import { startSandbox, type Sandbox } from '../../../src/sandbox/sandbox.ts'
import type { RedisForTests } from '../../support/ledger.ts'
import { isServed } from '../upstream/operations/scene.ts'
import { aFile, tocsin, type Ended } from './tocsin.ts'

export interface MonitoringScene {
  sandbox: Sandbox
  config: [string, string]
  /** Path of the monitoring file. */
  file: string
  statePath: string
  state(): Record<string, unknown>
  write(text: string): void
  apply(...args: string[]): Promise<Ended>
  /** On a terminal, where each question gets the next answer. */
  applyAnswering(answers: readonly string[], ...args: string[]): Promise<Ended>
  /** With the file on standard input, which is no terminal. */
  applyGiven(content: string, ...args: string[]): Promise<Ended>
  /** Requests that change something, since the last call: `POST /firework/v2/assets/`. */
  writes(): string[]
}

let prefixes = 0

const limits = { search: 100, basic: 100 }

export async function aMonitoringScene(
  tests: RedisForTests,
  content: string,
  options: SandboxOptions = {},
): Promise<MonitoringScene> {
  const keys = [{ key: 'fw_sandbox', tenants: [42, 43] }]
  const sandbox = await startSandbox({
    organizations: [{ id: 7, limits, keys }],
    policyPaths: 'underscore',
    undescribed: false,
    ...options,
  })
  onTestFinished(() => sandbox.close())
  const config = aFile('tocsin.yaml', configText(sandbox.url, tests.server.url))
  const file = aFile('monitoring.yaml', content)
  const statePath = join(dirname(file), 'monitoring.state.json')
  let seen = 0
  return {
    sandbox,
    config: ['--config', config],
    file,
    statePath,
    state: () => JSON.parse(readFileSync(statePath, 'utf8')) as Record<string, unknown>,
    write: (changed) => writeFileSync(file, changed),
    apply: (...args) => tocsin('assets', 'apply', '-f', file, '--config', config, ...args),
    applyAnswering: (answers, ...args) =>
      answering(answers, ['assets', 'apply', '-f', file, '--config', config, ...args]),
    applyGiven: (given, ...args) =>
      reading(given, ['assets', 'apply', '-f', '-', '--config', config, ...args]),
    writes() {
      const fresh = sandbox.requests.slice(seen)
      seen = sandbox.requests.length
      return fresh
        .filter(isServed)
        .filter(({ method, path }) => method !== 'GET' && path.startsWith('/firework/'))
        .map(({ method, path }) => `${method} ${path.replace(/[0-9a-f-]{36}/, '<uuid>')}`)
    },
  }
}

async function answering(answers: readonly string[], args: readonly string[]): Promise<Ended> {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  for (const stream of [input, errors]) Object.assign(stream, { isTTY: true })
  let [said, asked] = ['', 0]
  errors.on('data', (chunk) => {
    said += String(chunk)
    const questions = said.split('[y/N]').length - 1
    for (; asked < questions; asked += 1) input.write(`${answers[asked] ?? 'n'}\r`)
  })
  const code = await runProgram(args, { input, output, errors, stop: never })
  output.end()
  return { code, out: await text(output), err: said }
}

async function reading(given: string, args: readonly string[]): Promise<Ended> {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  input.end(given)
  const code = await runProgram(args, { input, output, errors, stop: never })
  output.end()
  errors.end()
  return { code, out: await text(output), err: await text(errors) }
}

const never = new AbortController().signal

export function configText(baseUrl: string, redisUrl: string, feeds = ''): string {
  const prefix = `monitoring${(prefixes += 1)}`
  return `redis: { url: "${redisUrl}", prefix: ${prefix} }
accounts:
  main: { base_url: "${baseUrl}", api_key: fw_sandbox, limits: { search: 100, basic: 100 } }
feeds:
${feeds === '' ? '  brand: { type: events, identifier_group: 1042 }' : feeds}
sinks:
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush" }
route: { sinks: [soc] }
`
}

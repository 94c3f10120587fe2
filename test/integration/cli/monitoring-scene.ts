/** A sandbox, a configuration that asks it, and a monitoring file, for `monitoring`. */
import { writeFileSync } from 'node:fs'
import type { SandboxOptions } from '../../../src/sandbox/options.ts'
import type { RedisForTests } from '../../support/ledger.ts'
import { aServiceScene, type ServiceScene } from './service-scene.ts'
import { aFile, type Ended } from './tocsin.ts'

export interface MonitoringScene {
  sandbox: ServiceScene['sandbox']
  run: ServiceScene['run']
  write(text: string): void
  plan(...args: string[]): Promise<Ended>
  apply(...args: string[]): Promise<Ended>
  /** At a terminal, at which this is typed. */
  applyTyping(typed: string, ...args: string[]): Promise<Ended>
  applyGiven(content: string): Promise<Ended>
  /** Requests that change something, since the last call: `POST /firework/v2/assets/`. */
  writes(): string[]
  /** Names of the policies that the asset of this name has. */
  policiesOf(name: string): string[]
}

export async function aMonitoringScene(
  tests: RedisForTests,
  content: string,
  options: SandboxOptions = {},
): Promise<MonitoringScene> {
  const service = await aServiceScene(tests, options)
  const { sandbox, run } = service
  const file = aFile('monitoring.yaml', content)
  let seen = 0
  return {
    sandbox,
    run,
    write: (text) => writeFileSync(file, text),
    plan: (...args) => run('monitoring', 'plan', '-f', file, ...args),
    apply: (...args) => run('monitoring', 'apply', '-f', file, ...args),
    applyTyping: (typed, ...args) =>
      service.runAt(typed, 'monitoring', 'apply', '-f', file, ...args),
    applyGiven: (given) => service.runGiven(given, 'monitoring', 'apply', '-f', '-'),
    writes() {
      const sent = service.sent().filter(({ method }) => method !== 'GET')
      const fresh = sent.slice(seen)
      seen = sent.length
      return fresh.map(({ method, path }) => `${method} ${path.replace(/[0-9a-f-]{36}/, '<uuid>')}`)
    },
    policiesOf(name) {
      const { assets, policies, assignments } = sandbox.monitoring
      const { id } = assets.all().find((asset) => asset.name === name)!
      const own = assignments().filter(({ identifierId }) => identifierId === id)
      return own.map(({ policyUuid }) => policies.get(policyUuid)!.name).toSorted()
    },
  }
}

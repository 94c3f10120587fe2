/**
 * The `doctor` command: looks at everything that Tocsin needs, without a message to anybody unless
 * asked. It says of each thing whether it is well, and what to do.
 */
import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { Redis } from '../../redis/client.ts'
import { StoreError } from '../../redis/health.ts'
import { createKeys } from '../../redis/keys.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { type OpenStore, withRedis } from '../open/open-store.ts'
import { withUpstream } from '../open/open-upstream.ts'
import { pluralize } from '../terminal.ts'
import { about, type Finding, isProblem, runProbes } from '../../operator/probes/probe.ts'
import { findingLine } from '../finding-line.ts'
import { probes } from './probes.ts'
import { layoutProbe, unreachableFinding } from '../../operator/probes/redis-probes.ts'

interface DoctorOptions extends CommonOptions {
  send?: true
}

export function doctorCommand(context: Context): Command {
  return addCommonOptions(new Command('doctor'))
    .option('--send', 'also send one message marked TEST to each destination of each sink')
    .action((options: DoctorOptions) => runDoctor(context, options))
}

/** Sets exit code 1 where there is a problem. Throws ConfigError. */
async function runDoctor(context: Context, options: DoctorOptions): Promise<void> {
  const loaded = loadConfigFile(context, options.config)
  const { terminal } = context
  terminal.progress('looking at Redis, the service and the sinks')
  const findings = await examine(loaded, context, options)
  terminal.progress('')
  print(context, options, {
    json: findings,
    lines: () => [...findings.map((one) => findingLine(terminal, one)), summary(findings)],
  })
  if (findings.some(isProblem)) context.exitCode = 1
}

async function examine(
  loaded: LoadedConfig,
  { env, stop }: Context,
  { send }: DoctorOptions,
): Promise<Finding[]> {
  const { config } = loaded
  const ofSink = send ? probes.sinkSend : probes.sinkReach
  const [served, reached, sinks] = await Promise.all([
    examineServed(config, stop),
    Promise.all(config.accounts.map((account) => runProbes(probes.reach, { account, env }, stop))),
    Promise.all(config.sinks.map((sink) => runProbes(ofSink, { sink, config, env }, stop))),
  ])
  const { redis, accounts } = served
  return [judgeFile(loaded), redis, ...reached, accounts, ...sinks].flat()
}

function judgeFile({ warnings }: LoadedConfig): Finding[] {
  if (warnings.length === 0) return [about('configuration', 'file').good('no warning')]
  return warnings.map(({ file, line, path, problem, remedy }) => {
    const detail = `${line === 0 ? '' : `line ${line}: `}${problem}`
    return about('configuration', path === '' ? file : path).bad('warning', detail, remedy)
  })
}

interface Served {
  redis: Finding[]
  accounts: Finding[]
}

async function examineServed(config: Config, stop: AbortSignal): Promise<Served> {
  try {
    return await withRedis(config.redis, async (redis) => {
      const needs = { redis, config }
      // the ledger first: a key that works again ends its account's pause
      const found = await runProbes([...probes.redisServer, ...probes.redis], needs, stop)
      const isOfNewer = found.some((one) => one.check === layoutProbe.name && isProblem(one))
      const accounts = isOfNewer ? unasked(config) : await examineAccounts(config, redis, stop)
      return { redis: found, accounts }
    })
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    return { redis: [unreachableFinding(error, config)], accounts: unasked(config) }
  }
}

/** The problem is that of Redis, and counted there. */
function unasked({ accounts }: Config): Finding[] {
  const detail = 'not checked: its requests are paced through Redis'
  return accounts.map(({ name }) => about('key', name).bad('warning', detail, 'mend Redis first'))
}

/** One after the other where they share a limit, so not all at once. */
const accountsAtOnce = 10

async function examineAccounts(
  config: Config,
  redis: Redis,
  stop: AbortSignal,
): Promise<Finding[]> {
  const store: OpenStore = { redis, keys: createKeys(config.redis.prefix), ledgers: [] }
  return withUpstream(config, store, async (upstream) => {
    const clients = config.accounts.map(({ name }) => upstream.client(name))
    // each service once, whatever the number of accounts
    const services = new Map(clients.map((one) => [new URL(one.account.baseUrl).host, one]))
    const healths = [...services.values()].map((client) =>
      runProbes(probes.service, { client }, stop),
    )
    const found: Finding[] = []
    for (let at = 0; at < clients.length; at += accountsAtOnce) {
      const asked = clients
        .slice(at, at + accountsAtOnce)
        .map((client) =>
          runProbes([...probes.key, ...probes.account], { config, store, client }, stop),
        )
      found.push(...(await Promise.all(asked)).flat())
    }
    return [...(await Promise.all(healths)).flat(), ...found]
  })
}

function summary(findings: readonly Finding[]): string {
  const count = (wanted: Finding['status']): number =>
    findings.filter(({ status }) => status === wanted).length
  const [problems, warnings] = [count('problem'), count('warning')]
  return `${pluralize(problems, 'problem')}, ${pluralize(warnings, 'warning')}, ${count('ok')} ok`
}

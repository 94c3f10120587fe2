/**
 * The folder that the demo keeps between runs: only the demo creates it, and one run uses it at a
 * time.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { z } from 'zod'
import { errorMessage } from '../../lib/errors.ts'
import {
  dropLockFile,
  findLockFile,
  replacePrivateFile,
  takeLockFile,
  checkPrivateFolder,
} from '../../lib/private-files.ts'
import { appHost } from '../../sandbox/api/search.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import { CommandError } from '../terminal.ts'

const demoState = z.object({
  seed: z.int(),
  apiKey: z.string(),
  webhookSecret: z.string(),
  redisPassword: z.string(),
  ports: z.object({ redis: z.int(), sandbox: z.int(), smtp: z.int(), http: z.int() }),
})

/** What the next run needs so that cursors, tokens and addresses stay valid. */
export type DemoState = z.infer<typeof demoState>

export interface DemoFolder {
  readonly path: string
  readonly state: DemoState
  /** Path of a file or folder in it. */
  at(name: string): string
  /** Replaces ports that another program has taken with free ones, and writes the state. */
  settlePorts(): Promise<void>
  /** Releases the lock for the next run. */
  close(): void
}

interface DemoFolderOptions {
  path: string
  /** Deletes everything of earlier runs first. */
  isFresh: boolean
  /** undefined: the seed of the earlier runs, or 1. */
  seed: number | undefined
}

const marker = 'made-by-tocsin-demo'
const lockName = 'lock'

/** Throws CommandError for a folder that is not a demo's, is in use, or has another seed. */
export function openDemoFolder({ path, isFresh, seed }: DemoFolderOptions): DemoFolder {
  const at = (name: string): string => join(path, name)
  makeFolder(path)
  refuseForeign(path)
  writeFileSync(at(marker), 'npm run demo keeps its state here; --fresh deletes all of it\n')
  takeLock(path)
  try {
    if (isFresh) emptyFolder(path)
    const state = existsSync(at('state.json')) ? readState(path) : newState(seed ?? 1)
    if (seed !== undefined && seed !== state.seed) {
      throw new CommandError(
        'mistake',
        `--seed ${seed}: ${path} goes on with seed ${state.seed}; leave --seed out, or add --fresh`,
      )
    }
    const save = (): void => {
      replacePrivateFile(at('state.json'), JSON.stringify(state, null, 2))
    }
    return {
      path,
      state: state,
      at,
      async settlePorts() {
        const { ports } = state
        for (const use of ['redis', 'sandbox', 'smtp', 'http'] as const) {
          ports[use] = (await tryPort(ports[use])) ?? (await tryPort(0)) ?? 0
        }
        save()
      },
      close: () => dropLockFile(at(lockName)),
    }
  } catch (error) {
    dropLockFile(at(lockName))
    throw error
  }
}

function makeFolder(path: string): void {
  let trouble: string | undefined
  try {
    trouble = checkPrivateFolder(path)
  } catch (error) {
    throw new CommandError(
      'mistake',
      `${path} cannot be made (${errorMessage(error)}); name another folder with --folder`,
      { cause: error },
    )
  }
  if (trouble !== undefined) throw new CommandError('mistake', `--folder ${path}: ${trouble}`)
}

function newState(seed: number): DemoState {
  return {
    seed,
    apiKey: `fw_sandbox_${randomBytes(8).toString('hex')}`,
    webhookSecret: `whsec_${randomBytes(32).toString('base64')}`,
    redisPassword: randomBytes(24).toString('hex'),
    ports: { redis: 0, sandbox: 0, smtp: 0, http: 0 },
  }
}

function readState(path: string): DemoState {
  try {
    return demoState.parse(JSON.parse(readFileSync(join(path, 'state.json'), 'utf8')))
  } catch (cause) {
    const problem = `${path} does not hold what this version of the demo wrote`
    throw new CommandError('mistake', `${problem}; begin anew with --fresh`, { cause })
  }
}

function refuseForeign(path: string): void {
  const names = readdirSync(path)
  if (names.length === 0 || names.includes(marker)) return
  throw new CommandError(
    'mistake',
    `${path} holds files that no demo made; name another folder with --folder`,
  )
}

function emptyFolder(path: string): void {
  const names = readdirSync(path).filter((name) => name !== marker && !name.startsWith(lockName))
  for (const name of names) rmSync(join(path, name), { recursive: true, force: true })
}

function takeLock(path: string): void {
  if (takeLockFile(join(path, lockName))) return
  const remedy = `end it, or name another folder with --folder (no demo runs? delete ${findLockFile(join(path, lockName))})`
  throw new CommandError('mistake', `another demo runs in ${path}; ${remedy}`)
}

/** Returns the port that it could bind (0 asks for any), or undefined when it is taken. */
async function tryPort(port: number): Promise<number | undefined> {
  const server = createServer()
  server.listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return undefined
  }
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' ? address?.port : undefined
}

/** Requests per second that the demo's sandbox allows: more than the real API, to be lively. */
export const demoLimits = { search: 5, basic: 10 }
export const demoSlackLimit = { perSecond: 12, burst: 12 }

export const digestSink = 'email'

interface DemoConfigOptions {
  redisUrl: string
  httpPort: number
  /** The identifier whose leaked credentials are polled. */
  identifier: number
  sandbox: Pick<
    Sandbox,
    'url' | 'apiKeys' | 'slackUrl' | 'webhookUrl' | 'webhookSecret' | 'smtpUrl'
  >
}

const yamlText = JSON.stringify // a JSON text is a YAML text

/** The configuration of the demo's daemon, as an operator would write it. */
export function demoConfig({ redisUrl, httpPort, identifier, sandbox }: DemoConfigOptions): string {
  return `# Written by the demo at every start: what its daemon runs with, every value filled in. Your own
# has the same form; the examples to copy are config/minimal.yaml and config/tocsin.yaml.
redis:
  url: ${yamlText(redisUrl)}

http:
  port: ${httpPort} # /metrics /healthz /readyz

accounts:
  sandbox:
    base_url: ${yamlText(sandbox.url)}
    link_hosts: [${appHost}] # where the pretend service's links lead; beside an api.… none is needed
    api_key: ${yamlText(sandbox.apiKeys[0])}
    limits: { search: ${demoLimits.search}, basic: ${demoLimits.basic} } # the service itself grants 1 and 4

${feedsYaml(identifier)}
${sinksYaml(sandbox)}
${routeYaml}`
}

function feedsYaml(identifier: number): string {
  return `feeds:
  brand:
    type: events
    identifier_group: 1042
    every: 5s
    lag_objective: 15s
    sweep: { every: 10s, back: 24h } # finds what arrived late; 1h and 7d are usual
    detail: [high, critical] # the full event is fetched before anybody is told
    labels: { team: brand }
  suppliers:
    type: events
    identifier_group: 1043
    every: 5s
    lag_objective: 15s
    sweep: { every: 10s, back: 24h }
    detail: [high, critical]
    labels: { team: purchasing }
  staff:
    type: credentials
    identifier: ${identifier}
    severity: high # the API gives credentials none
    every: 5s
    lag_objective: 15s
    labels: { team: identity }
`
}

function sinksYaml(sandbox: DemoConfigOptions['sandbox']): string {
  return `sinks:
  slack:
    type: slack
    url: ${yamlText(sandbox.slackUrl)}
    limit: 10/s # Slack itself grants 1/s
    allow_private: true # the sandbox is on this machine
  email:
    type: email
    smtp: ${yamlText(sandbox.smtpUrl)}
    from: tocsin@example.com
    to: [oncall@example.com]
    tls: off # for the sandbox alone
    # The demo sends one before it ends, as "tocsin digests send email" does.
    digest: { schedule: '*/15 * * * *', timezone: UTC, immediate: critical, max_items: 10 }
  webhook:
    type: webhook
    url: ${yamlText(sandbox.webhookUrl)}
    secret: ${yamlText(sandbox.webhookSecret)}
    allow_private: true
    batch: { max: 20, wait: 1s }
`
}

const routeYaml = `route:
  sinks: [webhook] # what no branch takes
  group_by: [feed] # people get a feed's events in one message
  group_wait: 5s
  group_interval: 15s
  routes:
    - name: critical
      matchers: ['severity>=critical']
      sinks: [slack, webhook, email]
      group_wait: 0s # each at once, in a message of its own
    - name: people
      matchers: ['severity>=medium']
      sinks: [slack, webhook, email]
`

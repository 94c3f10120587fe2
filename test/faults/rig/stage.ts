/**
 * The stage of a chaos run: a service that grows, a Redis behind a proxy, a fleet of replicas, and
 * inboxes for every kind of sink. What strikes it are the disturbances.
 */
import { createKeys } from '../../../src/redis/keys.ts'
import { createRandom, type EndMode, type Random } from '../../../src/sandbox/options.ts'
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts'
import { type AccountLedger, openLedger } from '../../../src/store/account-ledger.ts'
import { ledgerConfig } from '../../support/ledger.ts'
import { recipientHash } from '../../../src/sinks/destinations.ts'
import type { Received } from '../../../src/sandbox/receivers/received.ts'
import type { Inbox } from './accountant.ts'
import { type Fleet, startFleet } from './fleet.ts'
import { type Recovery, watchRecovery } from './recovery.ts'
import { startStore, type Store, type StoreKind } from './store.ts'

export interface Stage {
  random: Random
  sandbox: Sandbox
  store: Store
  fleet: Fleet
  recovery: Recovery
  /** The ledger, past every proxy. */
  ledger: AccountLedger
  longMs: number
  /** Ms by which the service's clock is ahead of ours. */
  skew: { ms: number }
  /** Which of two configurations the replicas are to run. */
  roll(variant: Variant): Promise<void>
  close(): Promise<void>
}

export interface StageOptions {
  seed: number
  store: StoreKind
  replicas: number
  /** How long an event loop is blocked, ms. */
  blockMs: number
  /** How long Redis, or a sink, is away for long, ms. */
  longMs: number
  log?: string | undefined
}

export const sinkNames = ['single', 'batch', 'soc', 'oncall', 'team'] as const

/** Every way in which a walk may end is met, run by run. */
const endModes: readonly EndMode[] = ['absent', 'full', 'empty', 'echo']

export async function openStage(options: StageOptions): Promise<Stage> {
  const skew = { ms: 0 }
  const store = await startStore(options.store)
  const sandbox = await startSandbox({
    organizations: [
      { id: 7, limits: { search: 20, basic: 20 }, keys: [{ key: 'fw_sandbox', tenants: [42] }] },
    ],
    slackLimit: { perSecond: 1_000, burst: 1_000 },
    seed: options.seed,
    now: () => Date.now() + skew.ms,
    keep: 1_000_000,
    endMode: endModes[options.seed % endModes.length] ?? 'full',
    shortPages: 0.1,
    emptyPages: 0.1,
  })
  const yamlOf = (variant: Variant): string => configOf(sandbox, store.section, variant)
  const fleet = startFleet({
    yaml: yamlOf('plain'),
    size: options.replicas,
    blockMs: options.blockMs,
    log: options.log,
  })
  const redis = store.client
  const keys = createKeys('tocsin')
  const ledger = await openLedger({ redis, keys, account: 'main', config: ledgerConfig })
  const recovery = watchRecovery(ledger, [`${keys.queuePrefix}:lanes`])
  return {
    random: createRandom(options.seed),
    sandbox,
    store,
    fleet,
    recovery,
    ledger: ledger,
    longMs: options.longMs,
    skew,
    roll: (variant) => fleet.roll(yamlOf(variant)),
    async close() {
      await recovery.stop()
      await fleet.stop()
      await sandbox.close()
      await store.stop()
    },
  }
}

/**
 * `plain`: what a run begins with. `other`: other feeds' filters, which begin new walks with overlap and
 * leave nothing out. `astray`: one webhook's host does not speak TLS, one's and the mail server's name
 * does not resolve.
 */
type Variant = 'plain' | 'other' | 'astray'

/** Two feeds that share events, and a sink of each kind: singly, in batches, in groups. */
function configOf(sandbox: Sandbox, redis: string, variant: Variant): string {
  const all =
    variant === 'plain' ? '' : ', filters: {severity: [info, low, medium, high, critical]}'
  const feed = (group: number): string =>
    `{type: events, identifier_group: ${group}, detail: [], every: 5s, start: 1h, initial_poll: send, rescan: {every: 10s, back: 1h}${all}}`
  const isAstray = variant === 'astray'
  const hosts: Record<string, string> = isAstray
    ? { single: sandbox.url.replace('http:', 'https:'), batch: 'http://nowhere.invalid' }
    : {}
  const smtp = isAstray ? 'smtp://nowhere.invalid' : sandbox.smtpUrl
  const hook = (name: string): string =>
    `type: webhook, url: '${hosts[name] ?? sandbox.url}/hooks/${name}', secret: '${sandbox.webhookSecret}', allow_private: true`
  const mail = `type: email, smtp: '${smtp}', from: tocsin@example.com, tls: off`
  return `
redis: ${redis}
http: {port: 0}
accounts: {main: {base_url: '${sandbox.url}', link_hosts: [app.example.com], api_key: '${sandbox.apiKeys[0]}', limits: {search: 20, basic: 20}}}
feeds: {brand: ${feed(1042)}, suppliers: ${feed(1043)}}
sinks:
  single: {${hook('single')}}
  batch: {${hook('batch')}, batch: {max: 8, wait: 300ms}}
  soc: {type: slack, url: '${sandbox.slackUrl}', allow_private: true, limit: 100/s}
  oncall: {${mail}, to: [a@example.com, b@example.com]}
  team: {${mail}, to: [team@example.com]}
route:
  sinks: [single, batch, soc, oncall]
  group_wait: 0s
  routes:
    - {name: everybody, matchers: [], sinks: [single, batch, soc, oncall], group_wait: 0s, continue: true}
    - {name: together, matchers: [], sinks: [team], group_by: [feed], group_wait: 1s, group_interval: 10s}
`
}

/** Every destination of the stage's configuration, with what arrived there. */
export function inboxesOf({ sandbox }: Pick<Stage, 'sandbox'>): Inbox[] {
  const { webhook, slack, email } = sandbox.received
  const hook = (name: string): Inbox => ({
    destination: name,
    received: webhook.filter(({ to }) => to === `/hooks/${name}`),
    saysRepeat: byHeader,
  })
  const mail = (sink: string, address: string): Inbox => ({
    destination: `${sink}:${recipientHash(address)}`,
    received: email.filter(({ to }) => to === address),
    saysRepeat: byHeader,
  })
  return [
    hook('single'),
    hook('batch'),
    {
      destination: 'soc',
      received: slack,
      saysRepeat: ({ body }) => /may be a repeat/i.test(body),
    },
    mail('oncall', 'a@example.com'),
    mail('oncall', 'b@example.com'),
    { ...mail('team', 'team@example.com'), isSummary: true },
  ]
}

function byHeader({ headers }: Received): boolean {
  return headers['tocsin-possible-repeat'] === 'true'
}

/**
 * The `demo` command: the daemon itself between the sandbox and its receivers, with a private
 * Redis. All is in a temporary folder that is removed at the end.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { loadConfig } from '../../config/load.ts'
import { type App, createApp } from '../../daemon/daemon.ts'
import { createLogger, type Logger, prettyLines } from '../../lib/logger.ts'
import { hashPassword } from '../../lib/password-hash.ts'
import { ensureRedis } from '../../redis/embedded-redis.ts'
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts'
import type { FaultInput } from '../../sandbox/server.ts'
import { readAccounting, sumPending } from '../../store/accounts.ts'
import { calledAs, type Context } from '../context.ts'
import { audit } from '../ledger/audit.ts'
import { withStore } from '../open/open-store.ts'
import { durationParser } from '../options.ts'
import { flushSink } from '../sinks/sinks-flush.ts'
import { readVersion } from '../version.ts'
import { accountLines, findDifferences, readAccount, shownUids } from './account.ts'
import { demoConfig, demoGroups, demoIdentifier, demoService, demoUser } from './config.ts'

export function demoCommand(context: Context): Command {
  return new Command('demo')
    .option('--for <duration>', 'end after this time, e.g. 30s', durationParser('1s'))
    .action(async ({ for: forMs = Infinity }: { for?: number }) => {
      context.exitCode = await runDemo(context, forMs)
    })
}

/** So there are dead letters, which PagerDuty takes when they are sent again. */
const firstRefused: FaultInput = {
  on: '/v2/enqueue',
  effect: 'status',
  status: 400,
  body: 'message',
  message: 'Event object is invalid',
  times: 3,
}

/** Returns 1 if anything is unaccounted for, otherwise 0. */
async function runDemo(context: Context, forMs: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-demo-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  context.ending?.addEventListener('abort', remove, { once: true }) // a second Ctrl-C
  const logger = createLogger({
    level: 'error', // what warns stands on the page
    pretty: await prettyLines(false),
    destination: { write: (line) => context.terminal.printError(line.trimEnd()) },
  })
  try {
    const sandbox = await startSandbox(demoService)
    sandbox.faults.add(firstRefused)
    try {
      const file = join(folder, 'tocsin.yaml')
      const password = randomBytes(8).toString('hex')
      const passwordHash = await hashPassword(password)
      const nowMs = context.clock.now()
      const setting = { sandbox, redisFolder: join(folder, 'redis'), passwordHash, nowMs }
      writeFileSync(file, demoConfig(setting), { mode: 0o600 })
      return await runDaemon({ context, sandbox, file, password, logger, forMs, beganMs: nowMs })
    } finally {
      await sandbox.close()
    }
  } finally {
    remove()
    context.ending?.removeEventListener('abort', remove)
  }
}

interface Stage {
  context: Context
  sandbox: Sandbox
  /** The daemon's configuration. */
  file: string
  /** Of the page's user. */
  password: string
  logger: Logger
  /** How long events arrive. */
  forMs: number
  beganMs: number
}

async function runDaemon(stage: Stage): Promise<number> {
  const { file, logger } = stage
  const loaded = loadConfig({ path: file, env: {} })
  const server = await ensureRedis(loaded.config.redis, logger)
  try {
    const app = createApp({ ...loaded, version: readVersion(), logger, isDemo: true })
    try {
      const { url } = await app.start()
      introduce(stage, url)
      await letArrive(stage)
      await letEnd(stage, app)
    } finally {
      await app.stop()
    }
    return await giveAccount(stage, loaded.config)
  } finally {
    await server.release()
  }
}

function introduce({ context, sandbox, file, password }: Stage, url: string): void {
  const tocsin = calledAs(context)
  context.terminal.print(
    [
      `open the page, signed in: ${url}/sign-in#${demoUser}:${password}`,
      `or by hand: ${url}, name ${demoUser}, password ${password}`,
      `what Slack, PagerDuty, the mailbox and the webhook get, live: ${sandbox.receivedUrl}`,
      `look inside by commands while it runs: ${tocsin} status --config ${file}`,
      `its metrics: ${url}/metrics; the pretend service: ${sandbox.url}`,
      'Ctrl-C ends it in order, a second one at once',
      '',
    ].join('\n'),
  )
}

/** Events that exist at the start, spread over `backlogMs`: within the first poll's 24 h. */
const backlogCount = 40
const backlogMs = 23 * 3_600_000

const arrivalMs = 500

/** Longest wait for the last poll, groups and the digest; after Ctrl-C a short one. */
const patienceMs = { asPlanned: 60_000, interrupted: 5_000 }

/** Lets events arrive, until the time is over or somebody ends the demo. */
async function letArrive({ context, sandbox, forMs }: Stage): Promise<void> {
  const { clock, stop } = context
  for (let place = backlogCount; place > 0; place--) {
    addEvent(sandbox, clock.now() - (place / backlogCount) * backlogMs)
  }
  const endMs = clock.monotonic() + forMs
  for (let tick = 0; !stop.aborted && clock.monotonic() <= endMs; tick++) {
    addEvent(sandbox, clock.now())
    if (tick % 8 === 0) sandbox.addCredentials(1, { identifierIds: [demoIdentifier] })
    await clock.sleep(arrivalMs, stop)
  }
}

function addEvent(sandbox: Sandbox, createdAtMs: number): void {
  const group = sandbox.events().length % 3 === 0 ? demoGroups.globex : demoGroups.acme
  sandbox.addEvent({ groupIds: [group], createdAtMs: Math.floor(createdAtMs) })
}

/** Lets all that has arrived be read and sent. */
async function letEnd({ context, sandbox, file }: Stage, app: App): Promise<void> {
  const { clock, stop, terminal } = context
  const leftMs = stop.aborted ? patienceMs.interrupted : patienceMs.asPlanned
  const waitUntil = async (isReached: () => Promise<boolean>): Promise<void> => {
    const endMs = clock.monotonic() + leftMs
    while (!(await isReached()) && clock.monotonic() < endMs) await clock.sleep(200)
  }
  terminal.print('\nno more events arrive; what has arrived is read and sent to the end')
  await waitUntil(async () => (await countTaken(app)) >= shownUids(sandbox).length)
  await waitUntil(async () => (await countPending(app, 'digest')) === 0)
  terminal.print('\n$ tocsin sinks flush email')
  await flushSink(heedless(context), 'email', { config: file, output: 'text' })
  await waitUntil(async () => (await countPending(app)) === 0)
}

/** For commands that the demo gives: the Ctrl-C that ends the demo is not for them. */
function heedless(context: Context): Context {
  return { ...context, stop: new AbortController().signal, exitCode: 0 }
}

/** Events that the feeds have taken in. */
async function countTaken({ ledgers }: App): Promise<number> {
  const all = await Promise.all(ledgers.map(readAccounting))
  return sum(all.flatMap(({ feeds }) => Object.values(feeds).map((feed) => feed.new)))
}

/** Items on their way, without those in state `waiting`. */
async function countPending({ ledgers }: App, waiting = ''): Promise<number> {
  const all = await Promise.all(ledgers.map(readAccounting))
  const sinks = all.flatMap((accounting) => Object.values(accounting.sinks))
  return sum(sinks.map((sink) => sumPending(sink) - (sink.pending[waiting] ?? 0)))
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

/** Counts both sides after the daemon has ended. A run that was cut short may leave events unread. */
async function giveAccount(stage: Stage, config: Config): Promise<number> {
  const { context, sandbox, file, beganMs } = stage
  const { terminal, stop, clock } = context
  const own = heedless(context)
  terminal.print('\n$ tocsin audit --ledger')
  await audit(own, { config: file, output: 'text', ledger: true, since: 0 })
  const period = { fromMs: beganMs, toMs: clock.now() }
  const account = await withStore(config, ({ ledgers }) => readAccount(ledgers, sandbox, period))
  terminal.print(`\n${accountLines(account, stop.aborted).join('\n')}`)
  terminal.print(`\nwith your own account: ${calledAs(context)} init`)
  return stop.aborted || findDifferences(account).length === 0 ? own.exitCode : 1
}

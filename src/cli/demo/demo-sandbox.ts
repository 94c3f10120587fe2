/** The demo's pretend service and sinks: what stood in earlier runs stands again, and the story goes on. */
import { systemClock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { credentialUid } from '../../sandbox/credentials/credential-history.ts'
import { createArrivals } from '../../sandbox/history/arrivals.ts'
import { createRandom } from '../../sandbox/random.ts'
import { startSandbox, type Sandbox } from '../../sandbox/sandbox.ts'
import { demoLimits, demoSlackLimit } from './demo-config.ts'
import type { DemoFolder } from './demo-folder.ts'
import { openDemoCredentials } from './demo-credentials.ts'
import { openDemoHistory, type DemoHistory } from './demo-history.ts'

export interface DemoSandbox extends Sandbox {
  /** From now on events arrive; the returned function ends that. */
  startArrivals(): () => Promise<void>
  /** One event arrives that was created so long ago: behind the cursor, so only a sweep finds it. */
  showLate(ageMs: number): void
  /** So many credentials arrive in the feed of `demoIdentifier`. */
  showCredentials(count: number): void
  /**
   * Uids of the events that a search of the group at `atMs` shows, and of the late ones among them
   * those that a sweep begun at `sweptAtMs` does.
   */
  shownAt(groupId: number, atMs: number, sweptAtMs?: number): string[]
  /** Uids of the credentials that a reading of their feed at `atMs` shows. */
  credentialsShownAt(atMs: number): string[]
}

/** The sandbox's own: whose leaked credentials the demo shows. */
export const demoIdentifier = { id: 77, name: 'example.com' }

export interface DemoSandboxOptions {
  folder: DemoFolder
  /** Mean of the events per second; above 0. */
  rate: number
  logger: Logger
}

/** So many stand at the very first start, over the last hours; so many came between two runs. */
const backlog = 40
const backlogMs = 23 * 3_600_000
const meanwhile = 10

/** Times of arrival are whole milliseconds of two processes' clocks. */
const toleranceMs = 50

export async function startDemoSandbox(options: DemoSandboxOptions): Promise<DemoSandbox> {
  const { folder, rate, logger } = options
  const { seed, apiKey, webhookSecret, ports } = folder.state
  const nowMs = systemClock.now()
  const history = openDemoHistory({ file: folder.at('history.jsonl'), seed, nowMs })
  const sandbox = await startSandbox({
    port: ports.sandbox,
    smtpPort: ports.smtp,
    seed,
    organizations: [{ id: 7, limits: demoLimits, keys: [{ key: apiKey, tenants: [42] }] }],
    webhookSecret,
    slackLimit: demoSlackLimit,
    shortPages: 0.1,
    emptyPages: 0.05,
    logger,
  })
  const file = folder.at('credentials.jsonl')
  const credentials = openDemoCredentials({ file, seed, nowMs, identifier: demoIdentifier })
  for (const event of history.earlier) sandbox.addEvent(event)
  sandbox.addCredentials(credentials.earlier)
  addBacklog(sandbox, history, nowMs)

  function startArrivals(): () => Promise<void> {
    const arrivals = createArrivals({
      perSecond: rate,
      lateShare: 0,
      lateMinMs: 60_000,
      lateMaxMs: 60_000,
      random: createRandom(seed + sandbox.events().length),
      logger,
      arrive(ageMs) {
        const atMs = systemClock.now()
        sandbox.addEvent(history.next(atMs - ageMs, atMs))
      },
    })
    arrivals.start()
    return () => arrivals.stop()
  }

  return {
    ...sandbox,
    startArrivals,
    showLate(ageMs) {
      const atMs = systemClock.now()
      sandbox.addEvent(history.late(atMs - ageMs, atMs))
    },
    showCredentials(count) {
      const made = Array.from({ length: count }, () => credentials.next(systemClock.now()))
      sandbox.addCredentials(made)
    },
    shownAt(groupId, atMs, sweptAtMs = 0) {
      const inGroup = sandbox.events().filter(({ groupIds }) => groupIds.includes(groupId))
      const late = inGroup.filter(({ uid }) => history.isLate(uid))
      const onTime = inGroup.filter(({ uid }) => !history.isLate(uid))
      return [...arrivedBy(onTime, atMs), ...arrivedBy(late, sweptAtMs)].map(({ uid }) => uid)
    },
    credentialsShownAt: (atMs) =>
      arrivedBy(sandbox.credentials(), atMs).map(({ id }) => credentialUid(id)),
  }
}

function arrivedBy<Shown extends { arrivedAtMs: number }>(
  all: readonly Shown[],
  atMs: number,
): Shown[] {
  return all.filter(({ arrivedAtMs }) => arrivedAtMs < atMs - toleranceMs)
}

/** Spread evenly between the last event there is and now. */
function addBacklog(sandbox: Sandbox, history: DemoHistory, nowMs: number): void {
  const last = history.earlier.at(-1)
  const sinceMs = Math.max(last?.createdAtMs ?? 0, nowMs - backlogMs)
  const count = last ? meanwhile : backlog
  for (let place = 1; place <= count; place++) {
    const createdAtMs = Math.floor(sinceMs + ((nowMs - sinceMs) * place) / count)
    sandbox.addEvent(history.next(createdAtMs, nowMs))
  }
}

/** How long an event takes through a daemon that has nothing else to do. */
import { configOfOne, sandboxOfOne } from './one-account.ts'
import { median, type Figures } from './report.ts'
import { webhookSink, type Rig } from './rig.ts'

export interface PostDelayPlan {
  /** One event for each of twenty feeds; one more round before it warms up. */
  rounds: number
}

const feeds = 20

/** Lets polls follow each other by some 400 ms, so that each event is alone. */
const limits = { search: 4, basic: 4 }

/**
 * From the moment the page with the event has left the service until its POST is received whole: the daemon
 * alone, its wait for the next poll not counted. The page is the last one of the event's feed before the POST.
 */
export async function measurePostDelay(rig: Rig, { rounds }: PostDelayPlan): Promise<Figures> {
  await rig.redis.flushall()
  const { groupIds, ...options } = sandboxOfOne(feeds)
  const sandbox = await rig.startSandbox(options)
  const receiver = await rig.startReceiver()
  const sinks = { siem: webhookSink(receiver, 'siem') }
  const daemon = await rig.startDaemon(configOfOne(sandbox, groupIds, sinks, { limits }))
  const groups = new Map<string, number>()
  for (let round = 0; round <= rounds; round += 1) {
    const plan = groupIds.map((groupId) => ({ groupId, atMs: 0 }))
    const arrived = await sandbox.call('arrive', plan)
    for (const [at, [uid]] of arrived.entries()) groups.set(uid, groupIds[at]!)
    await receiver.call('until', groups.size)
  }
  const delays: number[] = []
  for (const [uid, cameMs] of (await receiver.call('times')).slice(feeds)) {
    const leftMs = await sandbox.call('pageLeftMs', groups.get(uid)!, cameMs)
    delays.push(cameMs - leftMs!)
  }
  await daemon.stop()
  await receiver.close()
  return { 'poll-post-p50': median(delays), 'poll-post-worst': Math.max(...delays) }
}

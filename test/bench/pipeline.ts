/**
 * What most teams would write in our place, as BullMQ's documentation has it: a poller marks uids as seen and
 * adds a job for each new event, and a worker posts them, signed. It survives a crash and repeats after it; what
 * is marked as seen when it dies, and not yet a job, is lost.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Job, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { Agent } from 'undici'
import { sign } from '../../src/sinks/webhook/signature.ts'
import { answerCalls, type ProcessUse, untilThere } from './called-process.ts'
import { type FeedOptions, openServiceFeed, post } from './service-client.ts'

export type PipelineCalls = typeof calls

export interface PipelineOptions extends FeedOptions {
  redisUrl: string
  hook: { url: string; webhookSecret: string }
  /** Nothing is sent where there is no worker. */
  hasWorker: boolean
}

interface WireItem {
  metadata: { uid: string }
}

const rememberMs = 90 * 86_400_000
const pollEveryMs = 5_000
const jobOptions = {
  removeOnComplete: true,
  attempts: 5,
  backoff: { type: 'exponential', delay: 1_000 },
}
const done = { taken: 0, delivered: 0 }
const dispatcher = new Agent()

async function poll({ redisUrl, ...feed }: PipelineOptions): Promise<never> {
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  const queue = new Queue('events', { connection: redis })
  const readPage = await openServiceFeed(dispatcher, feed)
  for (;;) {
    const { items, next } = await readPage(await redis.get('cursor'))
    const added = await markSeen(redis, items as WireItem[])
    await queue.addBulk(added.map((data) => ({ name: 'event', data, opts: jobOptions })))
    done.taken += added.length
    if (next) await redis.set('cursor', next)
    else await sleep(pollEveryMs)
  }
}

/** Returns those that were not seen before. */
async function markSeen(redis: Redis, items: readonly WireItem[]): Promise<WireItem[]> {
  const marks = redis.pipeline()
  for (const { metadata } of items) marks.set(`seen:${metadata.uid}`, 1, 'PX', rememberMs, 'NX')
  const answers = (await marks.exec()) ?? []
  return items.filter((_item, at) => answers[at]?.[1] === 'OK')
}

function startWorker({ redisUrl, hook }: PipelineOptions): void {
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null })
  const worker = new Worker('events', (job) => deliver(job, hook), { connection, concurrency: 32 })
  worker.on('completed', () => (done.delivered += 1))
  worker.on('error', (error) => process.stderr.write(`${String(error)}\n`))
}

async function deliver(
  { id, data, attemptsMade, timestamp: addedMs }: Job<WireItem>,
  { url, webhookSecret }: PipelineOptions['hook'],
): Promise<void> {
  const timestamp = Math.floor(Date.now() / 1000)
  const fields = { type: 'event.v1', timestamp: new Date(addedMs).toISOString(), data }
  const [messageId, body] = [`msg_${id}`, JSON.stringify(fields)]
  const headers = {
    'webhook-id': messageId,
    'idempotency-key': messageId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': sign({ id: messageId, timestamp, body }, webhookSecret),
    attempt: String(attemptsMade + 1),
  }
  await post(dispatcher, { url: `${url}/hooks/siem`, headers, body })
}

const calls = {
  start(options: PipelineOptions) {
    if (options.hasWorker) startWorker(options)
    void poll(options)
  },
  /** So many events were taken in, or delivered and their jobs removed. */
  until: async (what: keyof typeof done, events: number): Promise<void> => {
    await untilThere(
      () => (done[what] >= events ? true : undefined),
      () => `${done[what]} of ${events} events were ${what}`,
    )
  },
  use(): ProcessUse {
    const { user, system } = process.cpuUsage()
    return { cpuSeconds: (user + system) / 1e6, rssBytes: process.memoryUsage.rss() }
  },
}

answerCalls(calls)

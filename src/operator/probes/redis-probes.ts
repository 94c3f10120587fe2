/** Probes of Redis: version, safety, memory, layout, and the ledger that it holds. */
import type { Config } from '../../config/config.ts'
import type { Redis } from '../../redis/client.ts'
import { createKeys } from '../../redis/keys.ts'
import { describeRedis, redisConfigKey } from '../../redis/place.ts'
import {
  findRisks,
  inspectRedis,
  readSchema,
  readServers,
  schemaVersion,
  type StoreError,
} from '../../redis/health.ts'
import { readLedgerState } from '../ledger-state.ts'
import { withoutShared } from '../problems.ts'
import { describeLoss, findLead, lossRemedy, readLoss } from '../../store/account-ledger.ts'
import { openLeftLedgers } from '../../store/accounts.ts'
import { pluralize } from '../../lib/errors.ts'
import { about, type Finding, type Probe, splitRemedy, type Subject } from './probe.ts'

function formatMebibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`
}

const seeDocs = 'see docs/install.md, Redis'

const timeoutMs = 10_000
const ledgerTimeoutMs = 60_000

export interface RedisNeeds {
  redis: Redis
  config: Config
  /** Looks at what these accounts alone have in the ledger. */
  accounts?: readonly string[] | undefined
  /** Says nothing of what all accounts share: see `withoutShared`. */
  isRestricted?: boolean | undefined
}

const place = ({ config }: RedisNeeds): string => redisConfigKey(config.redis)
const prefix = ({ config }: RedisNeeds): string => config.redis.prefix

export const serverProbe: Probe<RedisNeeds> = {
  name: 'redis',
  timeoutMs,
  subject: place,
  async find({ redis, config }, subject) {
    const servers = await readServers(redis)
    const names = servers.map(({ name }) => name).join(', ')
    const detail = `${describeRedis(config.redis).replace(/^[\w.]+: /, '')} answers: ${names}`
    const isTooOld = servers.some((server) => server.isTooOld)
    return [
      isTooOld
        ? subject.bad('problem', detail, 'use Redis 7 or newer, or Valkey')
        : subject.good(detail),
    ]
  },
}

export const safetyProbe: Probe<RedisNeeds> = {
  name: 'redis safety',
  timeoutMs,
  subject: place,
  async find({ redis, config }, subject) {
    const risks = await findRisks(redis)
    if (risks.length === 0) return [subject.good('append-only file, noeviction')]
    const status = config.redis.allowUnsafe ? 'warning' : 'problem'
    return risks.map((risk) => subject.bad(status, ...splitRemedy(risk, seeDocs)))
  },
}

export const redisMemoryProbe: Probe<RedisNeeds> = {
  name: 'redis memory',
  timeoutMs,
  subject: place,
  async find({ redis, config: { ledger } }, subject) {
    const { usedMemoryBytes, memoryLimitBytes, isFull } = await inspectRedis(redis)
    const limit =
      memoryLimitBytes === undefined ? 'no maxmemory' : `of ${formatMebibytes(memoryLimitBytes)}`
    const detail = `${formatMebibytes(usedMemoryBytes)} used, ${limit}`
    const full = `${detail}: no more events are taken in`
    if (isFull) return [subject.bad('problem', full, 'raise maxmemory')]
    if (ledger.maxBytes <= (memoryLimitBytes ?? Infinity) / 2) return [subject.good(detail)]
    const problem = 'retention.max_bytes is more than half of what Redis may use (maxmemory)'
    return [subject.bad('warning', `${detail}; ${problem}`, 'lower it, or give Redis more')]
  },
}

export const lossProbe: Probe<RedisNeeds> = {
  name: 'redis ledger',
  timeoutMs,
  subject: prefix,
  async find({ redis, config }, subject) {
    const loss = await readLoss(redis, createKeys(config.redis.prefix))
    if (loss === undefined) return []
    const detail = `since ${new Date(loss.atMs).toISOString()} it holds ${describeLoss(loss)}`
    return [subject.bad('problem', detail, lossRemedy)]
  },
}

/** Nothing else may be read or written where there is a finding. */
export const layoutProbe: Probe<RedisNeeds> = {
  name: 'redis layout',
  timeoutMs,
  isBasis: true,
  subject: prefix,
  async find({ redis, config }, subject) {
    const schema = await readSchema(redis, createKeys(config.redis.prefix))
    if (schema === undefined || schema <= schemaVersion) return []
    const detail = `a ledger of layout ${schema}, and this version writes ${schemaVersion}`
    const remedy = 'run the newer version, or give this one a prefix of its own (redis.prefix)'
    return [subject.bad('problem', detail, remedy)]
  },
}

export const ledgerProbe: Probe<RedisNeeds> = {
  name: 'ledger',
  timeoutMs: ledgerTimeoutMs,
  subject: prefix,
  find: findLedgerProblems,
}

/**
 * Opens the ledgers that are there, and creates none; asks nobody else. `accounts`: looks at these
 * alone.
 */
async function findLedgerProblems(
  { redis, config, accounts, isRestricted }: RedisNeeds,
  subject: Subject,
): Promise<Finding[]> {
  const keys = createKeys(config.redis.prefix)
  const ledgers = await openLeftLedgers({ redis, keys, config: config.ledger }, [])
  if (ledgers.length === 0) return [subject.good('nothing was taken in yet')]
  await findLead({ redis, keys }, ledgers)
  const state = await readLedgerState({ redis, keys, ledgers }, config, accounts)
  const { problems } = isRestricted ? withoutShared(state) : state
  if (problems.length > 0) return problems
  const all = (['account', 'feed', 'sink'] as const).map((thing) =>
    pluralize(config[`${thing}s`].length, thing),
  )
  return [subject.good(`${all.join(', ')}: nothing is late, refused, paused or given up`)]
}

/** What stands in the place of all findings about a Redis that is not reached. */
export function unreachableFinding({ message }: StoreError, { redis }: Config): Finding {
  const key = redisConfigKey(redis)
  return about('redis', key).bad(
    'problem',
    ...splitRemedy(message.replace(`${key}: `, ''), seeDocs),
  )
}

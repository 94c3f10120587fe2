/** What `doctor` says of Redis: version, safety, memory and layout. */
import type { Config } from '../../config/config.ts'
import type { Redis } from '../../redis/connection.ts'
import { createKeys } from '../../redis/keys.ts'
import { describeRedis, redisConfigKey } from '../../redis/place.ts'
import {
  findRisks,
  inspectRedis,
  readServers,
  type RedisHealth,
  schemaVersion,
  type StoreError,
} from '../../redis/health.ts'
import { describeLoss, type LedgerLoss, lossRemedy, readLoss } from '../../store/account-ledger.ts'
import { excessiveRetention, isWithinMemory } from '../../store/retention.ts'
import { about, type DoctorFinding, splitRemedy } from './doctor-finding.ts'
import { formatMebibytes } from './doctor-host.ts'

const seeDocs = 'see docs/install.md, Redis'

type RedisParts = Pick<Config, 'redis' | 'ledger'>

export async function checkRedis(redis: Redis, config: RedisParts): Promise<DoctorFinding[]> {
  const [servers, risks, health, loss] = await Promise.all([
    readServers(redis),
    findRisks(redis),
    inspectRedis(redis),
    readLoss(redis, createKeys(config.redis.prefix)),
  ])
  return [
    serverFinding(servers, config),
    ...safetyFindings(risks, config),
    memoryFinding(health, config),
    ...lossFindings(loss, config),
  ]
}

function lossFindings(loss: LedgerLoss | undefined, { redis }: RedisParts): DoctorFinding[] {
  if (loss === undefined) return []
  const detail = `since ${new Date(loss.atMs).toISOString()} it holds ${describeLoss(loss)}`
  return [about('redis ledger', redis.prefix).bad('problem', detail, lossRemedy)]
}

function serverFinding(
  servers: readonly { name: string; isTooOld: boolean }[],
  { redis }: RedisParts,
): DoctorFinding {
  const subject = about('redis', redisConfigKey(redis))
  const detail = `${describeRedis(redis).replace(/^[\w.]+: /, '')} answers: ${servers.map(({ name }) => name).join(', ')}`
  return servers.some(({ isTooOld }) => isTooOld)
    ? subject.bad('problem', detail, 'use Redis 7 or newer, or Valkey')
    : subject.good(detail)
}

function safetyFindings(risks: readonly string[], { redis }: RedisParts): DoctorFinding[] {
  const subject = about('redis safety', redisConfigKey(redis))
  if (risks.length === 0) return [subject.good('append-only file, noeviction')]
  const status = redis.allowUnsafe ? 'warning' : 'problem'
  return risks.map((risk) => {
    const [detail, remedy] = splitRemedy(risk, seeDocs)
    return subject.bad(status, detail, remedy)
  })
}

function memoryFinding(health: RedisHealth, { redis, ledger }: RedisParts): DoctorFinding {
  const subject = about('redis memory', redisConfigKey(redis))
  const { usedMemoryBytes, memoryLimitBytes, isFull } = health
  const limit =
    memoryLimitBytes === undefined ? 'no maxmemory' : `of ${formatMebibytes(memoryLimitBytes)}`
  const detail = `${formatMebibytes(usedMemoryBytes)} used, ${limit}`
  if (isFull) {
    return subject.bad('problem', `${detail}: no more events are taken in`, 'raise maxmemory')
  }
  if (isWithinMemory(ledger.maxBytes, memoryLimitBytes)) return subject.good(detail)
  const { problem, remedy } = excessiveRetention
  return subject.bad('warning', `${detail}; ${problem}`, remedy)
}

/** Nothing else may be read or written where there is a finding. */
export function layoutFindings(schema: number | undefined, { redis }: RedisParts): DoctorFinding[] {
  if (schema === undefined || schema <= schemaVersion) return []
  const detail = `a ledger of layout ${schema}, and this version writes ${schemaVersion}`
  const remedy = 'run the newer version, or give this one a prefix of its own (redis.prefix)'
  return [about('redis layout', redis.prefix).bad('problem', detail, remedy)]
}

export function unreachableFinding({ message }: StoreError, { redis }: RedisParts): DoctorFinding {
  const key = redisConfigKey(redis)
  const [detail, remedy] = splitRemedy(message.replace(`${key}: `, ''), seeDocs)
  return about('redis', key).bad('problem', detail, remedy)
}

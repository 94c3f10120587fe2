/** What `doctor` says of this machine: disk, memory and time zones. */
import { statfs } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { dirname } from 'node:path'
import { availableMemory, versions } from 'node:process'
import { errorCode } from '../../lib/errors.ts'
import type { Config } from '../../config/config.ts'
import { systemClock, withTimeout } from '../../lib/clock.ts'
import { isTimeZone } from '../../lib/time-zone.ts'
import { loopbackUrl } from '../../ops/reload-access.ts'
import { about, type CheckLimits, type DoctorFinding, makeCheck } from './doctor-finding.ts'

const mebibyte = 2 ** 20

export function formatMebibytes(bytes: number): string {
  return `${Math.round(bytes / mebibyte)} MiB`
}

/** Of this machine, as far as the configuration needs it. */
export async function checkHost(config: Config, stop: AbortSignal): Promise<DoctorFinding[]> {
  const { embedded: folder } = config.redis
  const { maxBytes } = config.ledger
  const limits = { timeoutMs: hostTimeoutMs, stop }
  const needs = { maxBytes, hasRedis: folder !== undefined }
  const takenBytes = await readDaemonBytes(config, stop)
  return [
    ...(folder === undefined ? [] : await checkDisk({ folder, maxBytes }, limits)),
    judgeMemory({ availableBytes: availableMemory(), takenBytes }, needs),
    judgeTimeZones({ release: versions['tz'], nowMs: systemClock.now() }),
  ]
}

/** A folder on a server that is gone, or what has the daemon's port, may answer never. */
const hostTimeoutMs = 5_000

export function checkDisk(
  { folder, maxBytes }: { folder: string; maxBytes: number },
  limits: CheckLimits,
  readFree = readFreeBytes,
): Promise<DoctorFinding[]> {
  return makeCheck(about('disk', folder), limits, async () => [
    judgeDisk(folder, await readFree(folder), maxBytes),
  ])
}

/** Of a folder that is not there yet, those where it would be. */
async function readFreeBytes(folder: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' || folder === dirname(folder)) throw error
    return readFreeBytes(dirname(folder))
  }
}

/** Redis writes a new append-only file beside the old one before it removes that. */
const copiesOnDisk = 2
const leastDiskBytes = 256 * mebibyte

export function judgeDisk(folder: string, freeBytes: number, maxBytes: number): DoctorFinding {
  const subject = about('disk', folder)
  const free = `${formatMebibytes(freeBytes)} free`
  const wanted = copiesOnDisk * maxBytes
  const remedy = `make room, or lower retention.max_bytes: ${formatMebibytes(wanted)} are wanted, twice retention.max_bytes`
  if (freeBytes < leastDiskBytes) return subject.bad('problem', free, remedy)
  return freeBytes < wanted ? subject.bad('warning', free, remedy) : subject.good(free)
}

/** What the daemon takes with a hundred feeds, and what it cannot start without. */
const usualMemoryBytes = 512 * mebibyte
const leastMemoryBytes = 128 * mebibyte

/** More than the metrics of a thousand feeds; something else may have the port, and never end. */
const maxMetricsLength = 8 * mebibyte

/** What a running daemon, and the Redis that it started, take of this machine; 0: none answers. */
async function readDaemonBytes({ http, redis }: Config, stop: AbortSignal): Promise<number> {
  const url = `${loopbackUrl(http.host, http.port)}/metrics`
  try {
    const text = await withTimeout(hostTimeoutMs, [stop], async (signal) => {
      const { body } = await fetch(url, { redirect: 'error', signal })
      return body === null ? '' : readBeginning(body)
    })
    const names = ['process_resident_memory_bytes']
    if (redis.embedded !== undefined) names.push('tocsin_redis_memory_used_bytes')
    return names.reduce((sum, name) => sum + readFigure(text, name), 0)
  } catch {
    return 0
  }
}

async function readBeginning(body: NonNullable<Response['body']>): Promise<string> {
  let text = ''
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (text.length > maxMetricsLength) break
  }
  return text
}

/** 0: there is none, or no daemon can have it. */
function readFigure(metrics: string, name: string): number {
  const [, figure] = new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics) ?? []
  const bytes = Number(figure)
  return bytes > 0 && bytes < totalmem() ? bytes : 0
}

interface Memory {
  availableBytes: number
  /** What the daemon has of the memory that it needs. */
  takenBytes: number
}

export function judgeMemory(
  { availableBytes, takenBytes }: Memory,
  { maxBytes, hasRedis }: { maxBytes: number; hasRedis: boolean },
): DoctorFinding {
  const subject = about('memory', 'this machine')
  const taken = `, and ${formatMebibytes(takenBytes)} that the daemon takes already`
  const available = `${formatMebibytes(availableBytes)} available${takenBytes > 0 ? taken : ''}`
  const wanted = usualMemoryBytes + (hasRedis ? maxBytes : 0)
  const remedy = hasRedis
    ? `give it more, or lower retention.max_bytes: ${formatMebibytes(wanted)} are wanted, for Tocsin and the embedded Redis`
    : `give it more: ${formatMebibytes(wanted)} are wanted`
  const hasBytes = availableBytes + takenBytes
  if (hasBytes < leastMemoryBytes) return subject.bad('problem', available, remedy)
  return hasBytes < wanted ? subject.bad('warning', available, remedy) : subject.good(available)
}

/** Countries change their clocks at short notice: data of the year before last is old. */
const currentYears = 1

export function judgeTimeZones({
  release = '',
  nowMs,
}: {
  /** Of the zone database, such as `2026a`. */
  release: string | undefined
  nowMs: number
}): DoctorFinding {
  const subject = about('time zones', 'this Node')
  const remedy = 'use a current Node, with its full time zone data'
  if (release === '' || !isTimeZone('Europe/Zurich')) {
    return subject.bad('problem', 'no time zone data', remedy)
  }
  const age = new Date(nowMs).getUTCFullYear() - Number.parseInt(release, 10)
  const detail = `data of release ${release}`
  return age > currentYears ? subject.bad('warning', detail, remedy) : subject.good(detail)
}

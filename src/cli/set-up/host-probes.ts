/** Probes of the file and of this machine, as far as the configuration needs it. */
import { statfs } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { dirname } from 'node:path'
import { constrainedMemory } from 'node:process'
import type { LoadedConfig } from '../../config/load.ts'
import { errorCode } from '../../lib/errors.ts'
import { about, type Finding, type Probe, type Subject } from './probe.ts'

const mebibyte = 2 ** 20

export function formatMebibytes(bytes: number): string {
  return `${Math.round(bytes / mebibyte)} MiB`
}

/** A folder on a server that is gone may answer never. */
const timeoutMs = 5_000

export type HostNeeds = Pick<LoadedConfig, 'config' | 'warnings'>

export const configurationProbe: Probe<HostNeeds> = {
  name: 'configuration',
  timeoutMs,
  subject: () => 'file',
  async find({ warnings }, subject) {
    if (warnings.length === 0) return [subject.good('no warning')]
    return warnings.map(({ file, line, path, problem, remedy }) => {
      const detail = `${line === 0 ? '' : `line ${line}: `}${problem}`
      return about('configuration', path === '' ? file : path).bad('warning', detail, remedy)
    })
  },
}

/** Of the folder of an embedded Redis. */
export const diskProbe: Probe<HostNeeds> = {
  name: 'disk',
  timeoutMs,
  subject: ({ config }) => config.redis.embedded ?? '',
  async find({ config: { redis, ledger } }, subject) {
    if (redis.embedded === undefined) return []
    return [judgeDisk(subject, await readFreeBytes(redis.embedded), ledger.maxBytes)]
  },
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

export function judgeDisk(subject: Subject, freeBytes: number, maxBytes: number): Finding {
  const free = `${formatMebibytes(freeBytes)} free`
  const wanted = copiesOnDisk * maxBytes
  const remedy = `make room, or lower retention.max_bytes: ${formatMebibytes(wanted)} are wanted, twice retention.max_bytes`
  if (freeBytes < leastDiskBytes) return subject.bad('problem', free, remedy)
  return freeBytes < wanted ? subject.bad('warning', free, remedy) : subject.good(free)
}

/** Of this machine or container as a whole: how much of it is free changes with every minute. */
export const memoryProbe: Probe<HostNeeds> = {
  name: 'memory',
  timeoutMs,
  subject: () => 'this machine',
  async find({ config: { redis, ledger } }, subject) {
    const bytes = Math.min(totalmem(), constrainedMemory() || Infinity)
    return [judgeMemory(subject, bytes, redis.embedded === undefined ? 0 : ledger.maxBytes)]
  },
}

/** What the daemon takes with a hundred feeds, and what it cannot start without. */
const usualMemoryBytes = 512 * mebibyte
const leastMemoryBytes = 128 * mebibyte

/** `redisBytes`: what an embedded Redis may take. */
export function judgeMemory(subject: Subject, bytes: number, redisBytes: number): Finding {
  const wanted = usualMemoryBytes + redisBytes
  const lower = redisBytes === 0 ? '' : ', or lower retention.max_bytes'
  const remedy = `give it more${lower}: Tocsin wants ${formatMebibytes(wanted)}`
  const detail = `${formatMebibytes(bytes)} of memory`
  if (bytes < leastMemoryBytes) return subject.bad('problem', detail, remedy)
  return bytes < wanted ? subject.bad('warning', detail, remedy) : subject.good(detail)
}

/** One target for so long: starts its process again after a hang or a crash, and tells what was found. */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { contentName, keep, type Finding } from './findings.ts'
import type { LoopOptions, Progress } from './fuzz-loop.ts'
import { minimise } from './minimise.ts'
import type { WorkerOptions } from './worker.ts'

export interface RunOptions {
  target: string
  /** File of the target's module. */
  module: string
  forMs: number
  seed: number
  seeds: string
  grown: string
  findings: string
  /** More folders and files to watch beside `src`. */
  watched?: string[]
  /** An input may take so long. */
  hangMs?: number
  /** So many findings end the run before its time. */
  enough?: number
}

export interface TargetReport extends Progress {
  target: string
  seconds: number
  findings: Finding[]
}

const source = join(import.meta.dirname, '../../../src/')
const worker = join(import.meta.dirname, 'worker.ts')
const heapMiB = 512
/** A process that dies again and again says nothing new. */
const mostDeaths = 5
/** A hang is waited for each time, so few. */
const deathMinimiseTries = 16

/** Before it says that it is ready. */
const startMs = 60_000

type Death = { kind: 'hangs' | 'crashes'; message: string }

export async function runTarget(options: RunOptions): Promise<TargetReport> {
  const startedMs = Date.now()
  const untilMs = startedMs + options.forMs
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-fuzz-'))
  const current = join(folder, 'current')
  const deadly: string[] = []
  const total: TargetReport = { target: options.target, ...nothing, seconds: 0, findings: [] }
  try {
    for (let life = 0; life < mostDeaths && Date.now() < untilMs; life += 1) {
      const seed = options.seed + life
      const given = workerOptions(options, { current, untilMs, seed, deadly })
      const { progress, findings, death } = await live(given, options.hangMs ?? 10_000)
      total.executions += progress.executions
      Object.assign(total, { corpus: progress.corpus, covered: progress.covered })
      total.findings.push(...findings)
      if (!death) break
      const input = inputIn(options.target, current, death)
      deadly.push(contentName(input))
      total.findings.push(await findingOf(options, folder, { ...death, input }))
      if (total.findings.length >= (options.enough ?? Infinity)) break
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return { ...total, seconds: (Date.now() - startedMs) / 1000 }
}

const nothing: Progress = { executions: 0, corpus: 0, covered: 0 }

function workerOptions(
  { target, module, seeds, grown, findings, watched = [], enough }: RunOptions,
  given: Pick<LoopOptions, 'current' | 'untilMs' | 'seed' | 'deadly'>,
): WorkerOptions {
  const addresses = [source, ...watched].map((path) => pathToFileURL(path).href)
  const starter = process.pid
  return { target, module, seeds, grown, findings, watched: addresses, enough, starter, ...given }
}

interface Life {
  progress: Progress
  findings: Finding[]
  /** undefined: it ended by itself. */
  death: Death | undefined
}

/** From its start to its end, or until it says nothing for too long. */
function live(options: WorkerOptions, hangMs: number): Promise<Life> {
  const child = startWorker(options)
  const findings: Finding[] = []
  let progress = nothing
  let isHanging = false
  let errors = ''
  const giveUp = (): void => {
    isHanging = true
    child.kill('SIGKILL')
  }
  let watch = setTimeout(giveUp, startMs)
  child.stderr?.on('data', (chunk) => (errors = `${errors}${String(chunk)}`.slice(-2000)))
  child.on('message', (message: { progress?: Progress; finding?: Finding }) => {
    clearTimeout(watch)
    watch = setTimeout(giveUp, hangMs)
    if (message.progress) progress = message.progress
    if (message.finding) findings.push(message.finding)
  })
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      clearTimeout(watch)
      resolve({ progress, findings, death: deathOf({ code, signal, isHanging, errors }) })
    })
  })
}

interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  isHanging: boolean
  errors: string
}

function deathOf({ code, signal, isHanging, errors }: Ended): Death | undefined {
  if (isHanging) return { kind: 'hangs', message: 'one input takes too long' }
  if (code === 0) return undefined
  return { kind: 'crashes', message: `the process ends with ${signal ?? code}\n${errors}` }
}

function startWorker(options: WorkerOptions): ChildProcess {
  const args = [`--max-old-space-size=${heapMiB}`, '--no-warnings', worker, JSON.stringify(options)]
  return spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
}

const aside = { untilMs: 0, seed: 0, deadly: [] }

async function findingOf(
  options: RunOptions,
  folder: string,
  { input, ...death }: Death & { input: Uint8Array },
): Promise<Finding> {
  const { target, findings, hangMs = 10_000 } = options
  const replay = join(folder, 'replay')
  const dies = async (smaller: Uint8Array): Promise<boolean> => {
    writeFileSync(replay, smaller)
    const given = workerOptions(options, { ...aside, current: join(folder, 'other') })
    return (await live({ ...given, replay }, hangMs)).death?.kind === death.kind
  }
  const smallest = await minimise(input, dies, deathMinimiseTries)
  return { target, ...death, file: keep(findings, target, smallest) }
}

/** What was being run when the process ended. */
function inputIn(target: string, file: string, { message }: Death): Uint8Array {
  if (!existsSync(file)) throw new Error(`${target} does not start: ${message}`)
  const bytes = readFileSync(file)
  return bytes.length < 4 ? bytes : bytes.subarray(4, 4 + bytes.readUInt32LE())
}

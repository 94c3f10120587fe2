/** The `demo` command: runs the demo, ends it in order, and prints its view. */

import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { styleText } from 'node:util'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { Environment } from '../../config/config.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { duration, rate } from '../../lib/config-fields.ts'
import { createLogger, type Logger } from '../../lib/logger.ts'
import type { Context } from '../context.ts'
import { pluralize, formatDuration, type Style } from '../terminal.ts'
import { accountingLine, type DemoFigures, messagesLine } from './account.ts'
import { type Arrival, clockTime, type DemoReading, type DemoView, sumBy } from './evidence.ts'
import { type DemoFolder, digestSink, openDemoFolder } from './folder.ts'
import { createDemoScreen } from './screen.ts'
import { type DemoStage, startStage } from './stage.ts'

interface DemoOptions {
  /** How long the demo runs, ms; undefined: until it is asked to stop. */
  for?: number
  fresh: boolean
  /** Events per second. */
  rate: number
  seed?: number
  folder: string
  output: 'text' | 'json'
}

interface DemoProcess {
  signal: AbortSignal
  stdout: NodeJS.WriteStream
  env: Environment
}

export function demoCommand(context: Context): Command {
  const command = new Command('demo')
  for (const option of demoOptions()) command.addOption(option)
  return command.action(async (options: DemoOptions) => {
    const { stop: signal, env } = context
    context.exitCode = await runDemo(options, { signal, env, stdout: process.stdout })
  })
}

function demoOptions(): Option[] {
  return [
    new Option('--for <duration>', 'end by itself after, e.g. 30s').argParser(parseDuration),
    new Option('--fresh', 'forget everything of earlier runs first').default(false),
    new Option('--rate <rate>', 'events that arrive, e.g. 2/s or 30/m')
      .argParser(parseRate)
      .default(2, '2/s'),
    new Option('--seed <n>', 'the same seed tells the same story (default: 1)').argParser(
      parseSeed,
    ),
    new Option('--folder <folder>', 'where it keeps its state').default('.tocsin-demo'),
    new Option('--output <form>', 'for people or for machines')
      .choices(['text', 'json'])
      .default('text'),
  ]
}

const durationField = duration('How long the demo runs.', '1s')
const rateField = rate('Events that arrive.')

function parseDuration(text: string): number {
  const parsed = durationField.safeParse(text)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentError('Write a duration of at least 1s, such as 30s or 5m.')
}

function parseRate(text: string): number {
  const parsed = rateField.safeParse(text)
  if (parsed.success && parsed.data <= 20) return parsed.data
  throw new InvalidArgumentError('Write a rate of at most 20/s, such as 2/s or 30/m.')
}

function parseSeed(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number from 0 to 999999999.')
}

/**
 * Runs until the time is up or `signal` aborts. Returns 1 if anything is unaccounted for, otherwise
 * 0.
 */
async function runDemo(options: DemoOptions, surroundings: DemoProcess): Promise<number> {
  const { fresh: isFresh, folder: path, seed } = options
  const folder = openDemoFolder({ path, isFresh, seed })
  try {
    return await runInFolder(folder, { options, surroundings })
  } finally {
    folder.close()
  }
}

async function runInFolder(folder: DemoFolder, request: DemoRequest): Promise<number> {
  const log = openLog(folder.at('tocsin.log'))
  const view = createView(request)
  let stage: DemoStage | undefined
  try {
    const onArrival = (arrival: Arrival): void => view.showArrival(arrival)
    const { rate: eventsPerSecond } = request.options
    stage = await startStage({ folder, rate: eventsPerSecond, onArrival, logger: log.logger })
    const figures = await Promise.race([runStage(stage, view, request), stage.broken])
    printResult(figures, folder, request)
    return figures.unaccounted === 0 ? 0 : 1
  } finally {
    await stage?.close()
    log.close()
  }
}

interface DemoRequest {
  options: DemoOptions
  surroundings: DemoProcess
}

function createView({ options: { output }, surroundings: { stdout, env } }: DemoRequest): DemoView {
  const print = (line: string): void => void stdout.write(`${line}\n`)
  if (output === 'json') return createDemoJson(print)
  const isScreen = stdout.isTTY && env['TERM'] !== 'dumb'
  if (!isScreen) return createDemoLines({ print, clock: systemClock })
  const paint = (style: Style, text: string): string => styleText(style, text, { stream: stdout })
  return createDemoScreen({ stdout, paint })
}

/**
 * Longest duration of the end phase: longer than the waits of rescans and groups, shorter after an
 * interruption.
 */
const patienceMs = { asPlanned: 40_000, interrupted: 8_000 }

/** The part of `--for` that is reserved for the end, when groups and the digest go out. */
function endPhaseMs(forMs: number): number {
  return Math.min(15_000, forMs / 3)
}

/** How much longer than planned events arrive until the late one among them can be shown. */
const latePatienceMs = 20_000

export async function runStage(
  stage: Omit<DemoStage, 'broken' | 'close'>,
  view: DemoView,
  { options, surroundings }: DemoRequest,
): Promise<DemoFigures> {
  const { signal } = surroundings
  const { for: forMs = Infinity } = options
  const endAtMs = systemClock.monotonic() + forMs
  const arrivalsMs = (): number => endAtMs - endPhaseMs(forMs) - systemClock.monotonic()
  const mayEnd = (): boolean => stage.isLateShown() || arrivalsMs() < -latePatienceMs
  view.introduce(stage.introduction)
  const endArrivals = stage.startArrivals()
  while (!signal.aborted && (arrivalsMs() > 0 || !mayEnd())) {
    const reading = await stage.read()
    stage.step(reading)
    const left = endAtMs - systemClock.monotonic()
    view.update({
      stage: left === Infinity ? 'runs' : `ends in ${formatDuration(Math.max(0, left))}`,
      ...reading,
    })
    const untilEndMs = arrivalsMs()
    await systemClock.sleep(untilEndMs > 0 ? Math.min(refreshMs, untilEndMs) : refreshMs, signal)
  }
  await endArrivals()
  await endRun(stage, view, signal.aborted ? patienceMs.interrupted : patienceMs.asPlanned)
  view.end()
  return stage.finish()
}

function printResult(
  figures: DemoFigures,
  folder: DemoFolder,
  { options, surroundings }: DemoRequest,
): void {
  const { stdout } = surroundings
  if (options.output === 'json') {
    stdout.write(`${JSON.stringify({ kind: 'accounting', ...figures })}\n`)
    return
  }
  const lines = [
    accountingLine(figures),
    messagesLine(figures),
    ...figures.differences.map((difference) => `unaccounted: ${difference}`),
    '',
    `What ran: ${folder.at('tocsin.yaml')}; what it did: ${folder.at('tocsin.log')}`,
    'Again, from here on: npm run demo; from the beginning: npm run demo -- --fresh',
    'With your own account: npm run tocsin -- init',
  ]
  stdout.write(`${lines.join('\n')}\n`)
}

const maxLogBytes = 5_000_000

/** Appends to the log of earlier runs, or begins a new one when that is too long. */
function openLog(path: string): { logger: Logger; close(): void } {
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (bytes > maxLogBytes) rmSync(path)
  const file = openSync(path, 'a', 0o600)
  let isOpen = true
  return {
    logger: createLogger({
      destination: { write: (line) => void (isOpen && writeSync(file, line)) },
    }),
    close() {
      isOpen = false
      closeSync(file)
    },
  }
}

/** How often the view is refreshed. */
export const refreshMs = 200

/**
 * Ends a demo run after the last event has arrived: waits until the feeds have read all of them,
 * pauses polling, lets groups go out when due, and sends the digest, if it has content, once
 * nothing else is on its way to its reader. What is not delivered in time stays pending for the
 * next run.
 */
export async function endRun(
  stage: Pick<DemoStage, 'read' | 'hasRead' | 'pausePolling' | 'sendDigest'>,
  view: Pick<DemoView, 'update'>,
  patienceMs: number,
): Promise<void> {
  const beganMs = systemClock.now()
  const elapsedMs = createStopwatch()

  /**
   * Resolves with the first reading for which `isReached` is true; undefined if none is within
   * `atMostMs` after `endRun` began.
   */
  async function waitUntil(
    atMostMs: number,
    isReached: (now: Reading) => boolean,
  ): Promise<Reading | undefined> {
    for (;;) {
      const reading = await stage.read()
      const left = sumBy(reading.sinks, ({ collected, pending }) => collected + pending)
      view.update({ stage: `ends; ${pluralize(left, 'item')} left to deliver`, ...reading })
      if (isReached(reading)) return reading
      if (elapsedMs() > atMostMs) return undefined
      await systemClock.sleep(refreshMs)
    }
  }

  await waitUntil(patienceMs / 2, (reading) => stage.hasRead(reading, beganMs))
  await stage.pausePolling()
  const ready = await waitUntil(patienceMs, ({ sinks }) =>
    sinks.every(({ name, pending }) => name !== digestSink || pending === 0),
  )
  const hasDigest = ready?.sinks.some(({ name, collected }) => name === digestSink && collected > 0)
  if (hasDigest === true) await stage.sendDigest()
  await waitUntil(patienceMs, ({ sinks }) =>
    sinks.every(({ collected, pending }) => collected + pending === 0),
  )
}

function createStopwatch(): () => number {
  const startMs = systemClock.monotonic()
  return () => systemClock.monotonic() - startMs
}

type Reading = Omit<DemoReading, 'stage'>

type Print = (line: string) => void

/** Further arrivals within a second are only counted. */
const linesPerSecond = 5

/** Prints one line for each arrival, at a rate that a reader or a build log can bear. */
export function createDemoLines({ print, clock }: { print: Print; clock: Clock }): DemoView {
  let sinceMs = -Infinity
  let printed = 0
  let skipped = 0

  function printSkipped(): void {
    if (skipped > 0) print(`… and ${skipped} more`)
    skipped = 0
  }

  function startSecond(): void {
    if (clock.monotonic() - sinceMs < 1_000) return
    printSkipped()
    sinceMs = clock.monotonic()
    printed = 0
  }

  return {
    introduce: (lines) => lines.forEach((line) => print(line)),
    showArrival({ atMs, sink, text }) {
      startSecond()
      if (printed < linesPerSecond) print(`${clockTime(atMs)} ${sink} ${text}`)
      else skipped += 1
      printed += 1
    },
    update: startSecond,
    end: printSkipped,
  }
}

/** Prints every arrival as one line of JSON. */
export function createDemoJson(print: Print): DemoView {
  return {
    introduce: () => {},
    showArrival({ atMs, ...arrival }) {
      print(JSON.stringify({ kind: 'arrival', at: new Date(atMs).toISOString(), ...arrival }))
    },
    update: () => {},
    end: () => {},
  }
}

import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { styleText } from 'node:util'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { Environment } from '../../config/config.ts'
import { type Clock, systemClock } from '../../lib/clock.ts'
import { duration, rate } from '../../lib/config-fields.ts'
import { createLogger, type Logger } from '../../lib/logger.ts'
import type { Context } from '../context.ts'
import { counted, spanInWords, type Style } from '../terminal.ts'
import { accountingLine, type DemoFigures, messagesLine } from './account.ts'
import { type Arrival, clockTime, type DemoReading, type DemoView, sumOf } from './evidence.ts'
import { type DemoFolder, digestSink, openDemoFolder } from './folder.ts'
import { createDemoScreen } from './screen.ts'
import { type DemoStage, raiseStage } from './stage.ts'

interface DemoOptions {
  /** How long it runs before it ends by itself, ms; undefined: until it is asked to stop. */
  for?: number
  fresh: boolean
  /** Events per second. */
  rate: number
  seed?: number
  folder: string
  output: 'text' | 'json'
}

interface DemoSurroundings {
  signal: AbortSignal
  stdout: NodeJS.WriteStream
  env: Environment
}

export function demoCommand(context: Context): Command {
  const command = new Command('demo')
  for (const option of demoFlags()) command.addOption(option)
  return command.action(async (options: DemoOptions) => {
    const { stop: signal, env } = context
    context.exitCode = await runDemo(options, { signal, env, stdout: process.stdout })
  })
}

function demoFlags(): Option[] {
  return [
    new Option('--for <duration>', 'end by itself after, e.g. 30s').argParser(inMs),
    new Option('--fresh', 'forget everything of earlier runs first').default(false),
    new Option('--rate <rate>', 'events that arrive, e.g. 2/s or 30/m')
      .argParser(perSecond)
      .default(2, '2/s'),
    new Option('--seed <n>', 'the same seed tells the same story (default: 1)').argParser(seedOf),
    new Option('--folder <folder>', 'where it keeps its state').default('.tocsin-demo'),
    new Option('--output <form>', 'for people or for machines')
      .choices(['text', 'json'])
      .default('text'),
  ]
}

const durationField = duration('How long the demo runs.', '1s')
const rateField = rate('Events that arrive.')

function inMs(text: string): number {
  const parsed = durationField.safeParse(text)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentError('Write a duration of at least 1s, such as 30s or 5m.')
}

function perSecond(text: string): number {
  const parsed = rateField.safeParse(text)
  if (parsed.success && parsed.data <= 20) return parsed.data
  throw new InvalidArgumentError('Write a rate of at most 20/s, such as 2/s or 30/m.')
}

function seedOf(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number from 0 to 999999999.')
}

/** Runs until the time is up or `signal` aborts; 1 where anything is unaccounted for, otherwise 0. */
async function runDemo(options: DemoOptions, surroundings: DemoSurroundings): Promise<number> {
  const { fresh: isFresh, folder: path, seed } = options
  const folder = openDemoFolder({ path, isFresh, seed })
  try {
    return await runIn(folder, { options, surroundings })
  } finally {
    folder.close()
  }
}

async function runIn(folder: DemoFolder, asked: Asked): Promise<number> {
  const log = openLog(folder.at('tocsin.log'))
  const view = viewFor(asked)
  let stage: DemoStage | undefined
  try {
    const onArrival = (arrival: Arrival): void => view.arrived(arrival)
    const { rate: eventsPerSecond } = asked.options
    stage = await raiseStage({ folder, rate: eventsPerSecond, onArrival, logger: log.logger })
    const figures = await Promise.race([play(stage, view, asked), stage.broken])
    conclude(figures, folder, asked)
    return figures.unaccounted === 0 ? 0 : 1
  } finally {
    await stage?.close()
    log.close()
  }
}

interface Asked {
  options: DemoOptions
  surroundings: DemoSurroundings
}

function viewFor({ options: { output }, surroundings: { stdout, env } }: Asked): DemoView {
  const print = (line: string): void => void stdout.write(`${line}\n`)
  if (output === 'json') return createDemoJson(print)
  const isScreen = stdout.isTTY && env['TERM'] !== 'dumb'
  if (!isScreen) return createDemoLines({ print, clock: systemClock })
  const paint = (style: Style, text: string): string => styleText(style, text, { stream: stdout })
  return createDemoScreen({ stdout, paint })
}

/** How long the end may take, ms: longer than sweeps and groups wait, shorter where somebody waits for it. */
const patienceMs = { asPlanned: 40_000, interrupted: 8_000 }

/** As much of `--for` is left to the end: groups and the digest have to go out. */
function endMsOf(forMs: number): number {
  return Math.min(15_000, forMs / 3)
}

async function play(
  stage: DemoStage,
  view: DemoView,
  { options, surroundings }: Asked,
): Promise<DemoFigures> {
  const { signal } = surroundings
  const { for: forMs = Infinity } = options
  const endAtMs = systemClock.monotonic() + forMs
  const arrivalsMs = (): number => endAtMs - endMsOf(forMs) - systemClock.monotonic()
  view.introduce(stage.introduction)
  const endArrivals = stage.startArrivals()
  while (!signal.aborted && arrivalsMs() > 0) {
    const reading = await stage.read()
    stage.step(reading)
    const left = endAtMs - systemClock.monotonic()
    view.update({ stage: left === Infinity ? 'runs' : `ends in ${spanInWords(left)}`, ...reading })
    await systemClock.sleep(Math.min(refreshMs, Math.max(0, arrivalsMs())), signal)
  }
  await endArrivals()
  await endRun(stage, view, signal.aborted ? patienceMs.interrupted : patienceMs.asPlanned)
  view.end()
  return stage.account()
}

function conclude(
  figures: DemoFigures,
  folder: DemoFolder,
  { options, surroundings }: Asked,
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
    'With your own account: README.md, beginning with a copy of config/minimal.yaml',
  ]
  stdout.write(`${lines.join('\n')}\n`)
}

const maxLogBytes = 5_000_000

/** Goes on behind earlier runs until it is long, then begins anew. */
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

/**
 * The end of a demo, in order: what arrived is fetched, then nothing more is polled, groups go out when
 * their time comes and the digest, if it has anything to tell, once nothing else is on its way to its
 * reader. What is not out in time
 * stays pending and goes out in the next run.
 */

/** How often the view is renewed, ms. */
export const refreshMs = 200

/** Nothing new arrives any more at the service. */
export async function endRun(
  stage: Pick<DemoStage, 'read' | 'hasRead' | 'pausePolling' | 'endDigest'>,
  view: Pick<DemoView, 'update'>,
  patienceMs: number,
): Promise<void> {
  const beganMs = systemClock.now()
  const elapsedMs = createStopwatch()

  /** The reading of which `isReached` is true; undefined: none was within so many ms of the end's begin. */
  async function within(
    atMostMs: number,
    isReached: (now: Reading) => boolean,
  ): Promise<Reading | undefined> {
    for (;;) {
      const reading = await stage.read()
      const left = sumOf(reading.sinks, ({ collected, pending }) => collected + pending)
      view.update({ stage: `ends; ${counted(left, 'item')} left to deliver`, ...reading })
      if (isReached(reading)) return reading
      if (elapsedMs() > atMostMs) return undefined
      await systemClock.sleep(refreshMs)
    }
  }

  await within(patienceMs / 2, (reading) => stage.hasRead(reading, beganMs))
  await stage.pausePolling()
  const ready = await within(patienceMs, ({ sinks }) =>
    sinks.every(({ name, pending }) => name !== digestSink || pending === 0),
  )
  const hasDigest = ready?.sinks.some(({ name, collected }) => name === digestSink && collected > 0)
  if (hasDigest === true) await stage.endDigest()
  await within(patienceMs, ({ sinks }) =>
    sinks.every(({ collected, pending }) => collected + pending === 0),
  )
}

function createStopwatch(): () => number {
  const startMs = systemClock.monotonic()
  return () => systemClock.monotonic() - startMs
}

type Reading = Omit<DemoReading, 'stage'>

type Print = (line: string) => void

/** What comes beyond it within a second is counted instead. */
const linesPerSecond = 5

/** A line for each arrival, as many as a reader or a build log can bear. */
export function createDemoLines({ print, clock }: { print: Print; clock: Clock }): DemoView {
  let sinceMs = -Infinity
  let printed = 0
  let unsaid = 0

  function sayRest(): void {
    if (unsaid > 0) print(`… and ${unsaid} more`)
    unsaid = 0
  }

  function renew(): void {
    if (clock.monotonic() - sinceMs < 1_000) return
    sayRest()
    sinceMs = clock.monotonic()
    printed = 0
  }

  return {
    introduce: (lines) => lines.forEach((line) => print(line)),
    arrived({ atMs, sink, text }) {
      renew()
      if (printed < linesPerSecond) print(`${clockTime(atMs)} ${sink} ${text}`)
      else unsaid += 1
      printed += 1
    },
    update: renew,
    end: sayRest,
  }
}

/** One JSON value a line, every arrival. */
export function createDemoJson(print: Print): DemoView {
  return {
    introduce: () => {},
    arrived({ atMs, ...arrival }) {
      print(JSON.stringify({ kind: 'arrival', at: new Date(atMs).toISOString(), ...arrival }))
    },
    update: () => {},
    end: () => {},
  }
}

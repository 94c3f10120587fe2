/**
 * Hands a running daemon everything wrong that it can be handed: configurations, answers of the service,
 * words of sinks, requests, arguments. Afterwards it must be the same process, and poll and deliver.
 */
import { connect } from 'node:net'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import {
  badArguments,
  badConfigurations,
  badItems,
  badRequests,
  oddItems,
  type BadInput,
} from './bad-inputs/inputs.ts'
import { startScene, toAllSinks, untilTrue, type LogLine, type Scene } from './bad-inputs/scene.ts'

test('after hundreds of bad inputs the daemon is the same, polls and delivers, and was clear each time', async () => {
  const { tried, crashed, unclear } = await tryAll()
  expect(crashed).toEqual([])
  expect(unclear).toEqual([])
  expect(tried).toBeGreaterThanOrEqual(250)
}, 900_000)

/** What shows the inside to whoever asked. */
const stack = /\n\s+at \S.*:\d+:\d+|node_modules|defect of Tocsin/
/** `file:line:column path: what is wrong; what to write`. */
const placed = /^[^\n]+?(:\d+:\d+)?( [^\n]+)?: [^\n;]+; [^\n]+$/

/** Of each part: what was tried, and by name what went wrong. */
interface Tally {
  tried: number
  /** After it the process was gone, hung, or no longer did its work. */
  crashed: string[]
  /** It was refused without a place or a remedy, or with a stack. */
  unclear: string[]
}

function emptyTally(): Tally {
  return { tried: 0, crashed: [], unclear: [] }
}

function sumOf(tallies: readonly Tally[]): Tally {
  return {
    tried: tallies.reduce((sum, { tried }) => sum + tried, 0),
    crashed: tallies.flatMap(({ crashed }) => crashed),
    unclear: tallies.flatMap(({ unclear }) => unclear),
  }
}

async function tryAll(): Promise<Tally> {
  const scene = await startScene()
  try {
    scene.pretenders.show('paste/x/first', toAllSinks)
    const tallies = await Promise.all([
      tryConfigurations(scene),
      tryRequests(scene),
      tryArguments(scene),
      tryAnswers(scene),
      tryItems(scene),
    ])
    return sumOf([...tallies, await lookAfterwards(scene)])
  } finally {
    await scene.stop()
  }
}

async function tryConfigurations(scene: Scene): Promise<Tally> {
  const tally = emptyTally()
  for (const { name, content } of badConfigurations()) {
    const { msg, mistakes } = await scene.reload(content)
    tally.tried += 1
    if (!scene.isAlive()) return { ...tally, crashed: [name] }
    const lines = Array.isArray(mistakes) ? mistakes.map(String) : []
    const isRefused = msg === 'configuration not reloaded; the old one stays'
    const isClear = lines.length > 0 && lines.every((line) => placed.test(line))
    if (!isRefused || !isClear) tally.unclear.push(`${name}: ${String(msg)} ${lines.join(' | ')}`)
    if (lines.some((line) => line.includes('the-secret'))) tally.unclear.push(`${name}: a secret`)
  }
  const { msg } = await scene.restore()
  if (!/^configuration (reloaded|read again)/.test(String(msg))) tally.crashed.push('the good file')
  return tally
}

/** So many connections at once. */
const lanes = 8

async function tryRequests(scene: Scene): Promise<Tally> {
  const tally = emptyTally()
  const waiting = [...badRequests]
  async function work(): Promise<void> {
    for (let request = waiting.pop(); request; request = waiting.pop()) {
      const answer = await exchange(scene.port, request.content)
      tally.tried += 1
      const { name } = request
      if (answer === undefined) tally.unclear.push(`${name}: no answer, and the connection stays`)
      else if (answer.startsWith('HTTP/1.1 5') || stack.test(answer))
        tally.unclear.push(`${name}: ${answer}`)
    }
  }
  await Promise.all(Array.from({ length: lanes }, work))
  return tally
}

/**
 * What is asked is whether an answer comes at all, not how soon: the commands of `tryArguments` keep this process
 * from reading for seconds, and the daemon is reading configurations meanwhile.
 */
const patienceMs = 120_000

/** All that comes back until the end; undefined where there is none in time. */
function exchange(port: number, bytes: Buffer): Promise<string | undefined> {
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1')
    const late = setTimeout(() => end(undefined), patienceMs)
    function end(result: string | undefined): void {
      clearTimeout(late)
      socket.destroy()
      resolve(result)
    }
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')))
    socket.on('error', () => end(answer)) // hung up before all was written
    socket.on('close', () => end(answer))
    socket.end(bytes)
  })
}

async function tryArguments(scene: Scene): Promise<Tally> {
  const tally = emptyTally()
  for (const { name, content } of badArguments) {
    const args = content.map((word) => word.replace('CONFIG', scene.file))
    const { code, err } = await run(args)
    tally.tried += 1
    if (code !== 1 && code !== 2) tally.crashed.push(`${name}: exit code ${code}`)
    else if (err.trim() === '' || stack.test(err)) tally.unclear.push(`${name}: ${err}`)
  }
  return tally
}

/** In this process: the start of a Node for each would be all that is measured. */
async function run(args: string[]): Promise<{ code: number; err: string }> {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
  input.end()
  output.resume()
  const said = text(errors)
  const code = await runProgram(args, { input, output, errors, stop: AbortSignal.timeout(240_000) })
  errors.end()
  return { code, err: await said }
}

/** Every feed, token and sink whose turn it was. */
async function tryAnswers({ pretenders, log }: Scene): Promise<Tally> {
  const { answers, grants, hook, slack, handedOut } = pretenders
  const expected = [
    ...namesOf(answers, 'feed'),
    ...namesOf(hook, 'hook'),
    ...namesOf(slack, 'slack'),
    ...namesOf(grants, 'token'),
  ]
  const missing = (): string[] => expected.filter((name) => !handedOut.has(name))
  await untilTrue(() => missing().length === 0, 240_000)
  return {
    tried: expected.length - missing().length,
    crashed: missing().map((name) => `${name}: was never asked for`),
    unclear: unclearLines(log),
  }
}

function namesOf(inputs: readonly BadInput<unknown>[], where: string): string[] {
  return inputs.map(({ name }) => `${where}: ${name}`)
}

/** Only a defect of ours is logged with its stack. */
function unclearLines(log: readonly LogLine[]): string[] {
  return log
    .filter((line) => /"stack"|broke off|a line that is no JSON/.test(JSON.stringify(line)))
    .map((line) => JSON.stringify(line).slice(0, 600))
}

/** Each without a uid is kept aside by itself, counted, and each with one is an event. */
async function tryItems(scene: Scene): Promise<Tally> {
  const { items, handedOut } = scene.pretenders
  const areAllRead = await untilTrue(() => items.every(({ name }) => handedOut.has(name)), 240_000)
  const wanted = { quarantined: badItems.length, new: oddItems.length }
  const deadline = performance.now() + 240_000
  let found = { quarantined: 0, new: 0 }
  const isDone = (): boolean => found.quarantined === wanted.quarantined && found.new === wanted.new
  while (areAllRead && !isDone() && performance.now() < deadline) {
    found = {
      quarantined: await scraped(scene, 'tocsin_events_quarantined_total{feed="items"'),
      new: await scraped(scene, 'tocsin_events_new_total{feed="items"'),
    }
  }
  const lost = isDone()
    ? []
    : [`of odd items ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`]
  return { tried: items.length, crashed: lost, unclear: [] }
}

/** The sum of all series that begin so. */
async function scraped({ port }: Scene, series: string): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`)
  const lines = (await answer.text()).split('\n').filter((each) => each.startsWith(series))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1) ?? 0), 0)
}

/** The good feed still reaches the good sink. */
async function lookAfterwards(scene: Scene): Promise<Tally> {
  const { pretenders, port, log } = scene
  pretenders.show('paste/x/last', 'paste')
  const hasArrived = await untilTrue(
    () => pretenders.received.some((body) => body.includes('paste/x/last')),
    60_000,
  )
  const { status } = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => ({ status: 0 }))
  const crashed = [
    ...(scene.isAlive() ? [] : ['the process is gone']),
    ...(hasArrived ? [] : ['a good event no longer arrives']),
    ...(status === 200 ? [] : [`/healthz says ${status}`]),
    ...(log.filter(({ msg }) => msg === 'tocsin runs').length === 1 ? [] : ['it began anew']),
  ]
  return { tried: 0, crashed, unclear: unclearLines(log) }
}

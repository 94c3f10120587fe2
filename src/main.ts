#!/usr/bin/env node
/** The entry point: arguments, signals and exit code. */
const stopping = new AbortController()
const ending = new AbortController()
const reloads = new EventTarget()

function stop(signal: NodeJS.Signals): void {
  if (signal === 'SIGINT' && stopping.signal.aborted) process.exit(130)
  stopping.abort()
}

/** A command that does not handle reloads ends on SIGHUP, as when its terminal closes. */
function reload(signal: NodeJS.Signals): void {
  const isUnheeded = reloads.dispatchEvent(new Event('reload', { cancelable: true }))
  if (isUnheeded) stop(signal)
}

/** Without a listener Node opens a debugger for every local user, so this comes first. */
process.on('SIGUSR1', () => {})
process.on('SIGHUP', reload)
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
process.on('exit', () => ending.abort())

const { findNodeMistake } = await import('./cli/version.ts')
const mistake = findNodeMistake()
if (mistake !== undefined) {
  process.stderr.write(`${mistake}\n`)
  process.exit(2)
}

const { runProgram, watchStandardOutput } = await import('./cli/program.ts')

const streams = { input: process.stdin, output: process.stdout, errors: process.stderr }
const standardOutput = watchStandardOutput(streams)
const code = await runProgram(process.argv.slice(2), {
  ...streams,
  stop: stopping.signal,
  ending: ending.signal,
  reloads,
})
process.exit(await standardOutput.end(code))

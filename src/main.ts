#!/usr/bin/env node
/** The door: arguments, signals, exit code; nothing else. */
import { runProgram } from './cli/program.ts'

const stopping = new AbortController()
const reloads = new EventTarget()

function stop(signal: NodeJS.Signals): void {
  if (signal === 'SIGINT' && stopping.signal.aborted) process.exit(130)
  stopping.abort()
}

/** A command that does not read its configuration again ends with its terminal. */
function reload(signal: NodeJS.Signals): void {
  const isUnheeded = reloads.dispatchEvent(new Event('reload', { cancelable: true }))
  if (isUnheeded) stop(signal)
}

process.on('SIGHUP', reload)
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
// a reader that has seen enough, such as head
process.stdout.on('error', () => process.exit(0))

const code = await runProgram(process.argv.slice(2), {
  input: process.stdin,
  output: process.stdout,
  errors: process.stderr,
  stop: stopping.signal,
  reloads,
})
// not before what was written is out
process.stdout.write('', () => process.exit(code))

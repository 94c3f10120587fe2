#!/usr/bin/env node
/** The door: arguments, signals, exit code; nothing else. */
import { runProgram } from './cli/program.ts'

const stopping = new AbortController()

function stop(signal: NodeJS.Signals): void {
  if (signal === 'SIGINT' && stopping.signal.aborted) process.exit(130)
  stopping.abort()
}

process.on('SIGTERM', stop)
process.on('SIGINT', stop)
// a reader that has seen enough, such as head
process.stdout.on('error', () => process.exit(0))

const code = await runProgram(process.argv.slice(2), {
  input: process.stdin,
  output: process.stdout,
  errors: process.stderr,
  stop: stopping.signal,
})
// not before what was written is out
process.stdout.write('', () => process.exit(code))

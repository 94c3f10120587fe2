/** The process in which a target runs: it may hang or die, and whoever started it sees that. */
import { readFileSync } from 'node:fs'
import { endWithStarter } from './end-with-starter.ts'
import { fuzzLoop, type LoopOptions } from './fuzz-loop.ts'
import type { TargetModule } from './target.ts'

/** `starter`: the id of its process. `replay`: a file to run once, instead of the loop. */
export interface WorkerOptions extends LoopOptions {
  module: string
  starter: number
  replay?: string
}

const options = JSON.parse(process.argv[2] ?? '{}') as WorkerOptions
endWithStarter(options.starter)
const module = (await import(options.module)) as TargetModule
const send = (message: object): void => void process.send?.(message)

send({ isReady: true })
if (options.replay === undefined) {
  await fuzzLoop(module, options, {
    onProgress: (progress) => send({ progress }),
    onFinding: (finding) => send({ finding }),
  })
} else {
  await module.fuzz(readFileSync(options.replay))
}
process.disconnect?.()

/** A process that outlives its starter would hang or fuzz on unseen. A thread looks: an input may never end. */
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const lookMs = 500

export function endWithStarter(starter: number): void {
  new Worker(new URL(import.meta.url), { workerData: starter }).unref()
}

if (!isMainThread) {
  setInterval(() => {
    if (process.ppid !== workerData) process.kill(process.pid, 'SIGKILL')
  }, lookMs)
}

/** What happens to processes: killed, restarted, frozen, blocked, given another configuration. */
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../support/until.ts'
import type { Disturbance } from '../rig/disturbance.ts'
import type { Stage } from '../rig/stage.ts'

/** Longer than the lock of a job (10 s): what a paused process held belongs to others when it goes on. */
const freezeMs = 12_000

export const kill: Disturbance = {
  name: 'replica killed (SIGKILL)',
  weight: 20,
  async strike(stage) {
    await sleep(300 + 900 * stage.random.next())
    await stage.recovery.watch(await stage.fleet.kill(await anyRunning(stage)))
  },
}

export const restart: Disturbance = {
  name: 'replica restarted (SIGTERM)',
  weight: 3,
  strike: (stage) => stage.fleet.restart(anyOf(stage)),
}

export const roll: Disturbance = {
  name: 'rolling restart to another configuration and back',
  async strike(stage, ms) {
    await stage.roll('other')
    await sleep(ms)
    await stage.roll('plain')
  },
}

const freeze: Disturbance = {
  name: 'replica frozen for 12 s (SIGSTOP)',
  strike: (stage) => stage.fleet.freeze(anyOf(stage), freezeMs),
}

const block: Disturbance = {
  name: 'event loop blocked',
  strike: (stage) => stage.fleet.block(anyOf(stage)),
}

/** All at once: whoever goes on first finds what the others held. */
export const standstill: Disturbance = {
  name: 'one replica frozen, the others blocked',
  async strike({ fleet, recovery }) {
    recovery.forget() // nobody is there to take anything up
    const others = Array.from({ length: fleet.size - 1 }, (_, i) => fleet.block(i + 1))
    await Promise.all([fleet.freeze(0, freezeMs), ...others])
  },
}

export const replicaDisturbances: readonly Disturbance[] = [
  kill,
  restart,
  freeze,
  block,
  standstill,
  roll,
]

function anyOf({ random, fleet }: Stage): number {
  return random.int(0, fleet.size - 1)
}

/** One of those that run, once so many do that somebody is left to take its work up. */
async function anyRunning(stage: Stage): Promise<number> {
  const { random, fleet } = stage
  const enough = Math.max(1, fleet.size - 1)
  await until('enough replicas run', () => fleet.running().length >= enough)
  const running = fleet.running()
  return running[random.int(0, running.length - 1)]!
}

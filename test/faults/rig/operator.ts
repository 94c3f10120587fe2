import { createCircuit } from '../../../src/delivery/circuit.ts'
import { replayDeadLetter } from '../../support/acts.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { sinkNames, type Stage } from './stage.ts'

export interface Operator {
  /** Once the trouble is over: resumes each sink, replays its dead letters, lets nothing wait for hours. */
  act(): Promise<void>
}

export function callOperator({ ledger, store }: Pick<Stage, 'ledger' | 'store'>): Operator {
  const keys = createKeys('tocsin')
  const circuit = createCircuit(store.client, keys)
  async function replay(sink: string): Promise<void> {
    for (const ref of await ledger.redis.zrange(ledger.key('dead', sink), '0', '499')) {
      await replayDeadLetter(ledger, ref, sink === 'batch' ? 300 : undefined)
    }
  }

  return {
    async act() {
      for (const sink of sinkNames) {
        await circuit.pause(sink, undefined)
        await replay(sink)
      }
      for (const sink of sinkNames) await hasten(ledger, sink)
    },
  }
}

/** Tries that would come in minutes or hours come now: the table of waits has its own tests. */
async function hasten(ledger: Stage['ledger'], sink: string): Promise<void> {
  const due = ledger.key('due', sink)
  const claims = new Set(await ledger.redis.hkeys(ledger.key('claims')))
  const later = await ledger.redis.zrangebyscore(due, Date.now(), '+inf')
  for (const ref of later) {
    if (!claims.has(ref)) await ledger.redis.zadd(due, 'XX', Date.now(), ref)
  }
}

import { writeProofNote } from '../proof/proof-log.ts'
import type { BookProof } from '../proof/ledger-proof.ts'
import { proveLedger } from '../proof/prove-ledger.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Context } from './context.ts'
import type { OpenLedger } from './open-ledger.ts'
import { counted } from './words.ts'

/** Looks at the ledger as a whole, and leaves for the metrics what it found. */
export async function auditLedger(
  { terminal, stop }: Context,
  { redis, keys, books }: OpenLedger,
): Promise<BookProof[]> {
  const steps = proveLedger(books)
  try {
    for (;;) {
      const step = await steps.next()
      stop.throwIfAborted()
      if (step.done) {
        await writeProofNote(redis, keys, step.value, systemClock.now())
        return step.value
      }
      terminal.progress(`ledger: ${counted(step.value, 'record')} read`)
    }
  } finally {
    terminal.progress('')
  }
}

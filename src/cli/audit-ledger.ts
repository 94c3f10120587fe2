import { activeHash } from '../ledger/generation.ts'
import { writeProofNote } from '../proof/proof-log.ts'
import type { BookProof } from '../proof/ledger-proof.ts'
import { proveLedger } from '../proof/prove-ledger.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Context } from './context.ts'
import { needIndex, type OpenLedger } from './open-ledger.ts'
import { counted } from './words.ts'

/** Looks at the ledger as a whole, and leaves for the metrics what it found. */
export async function auditLedger(
  context: Context,
  ledger: OpenLedger,
  hash: string,
): Promise<BookProof[]> {
  await needIndex(context, ledger)
  const { terminal, stop } = context
  const steps = proveLedger(ledger.books)
  try {
    for (;;) {
      const step = await steps.next()
      stop.throwIfAborted()
      if (step.done) {
        await note(ledger, hash, step.value)
        return step.value
      }
      terminal.progress(`ledger: ${counted(step.value, 'record')} read`)
    }
  } finally {
    terminal.progress('')
  }
}

/** Another configuration than the replicas' may lack an account that messages are made of. */
async function note({ redis, keys }: OpenLedger, hash: string, proofs: BookProof[]): Promise<void> {
  const active = (await activeHash(redis, keys)) ?? hash
  if (active === hash) await writeProofNote(redis, keys, proofs, systemClock.now())
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { Stage } from './stage.ts'
import type { StoreKind } from './store.ts'

/** One kind of harm. */
export interface Disturbance {
  name: string
  /** Does its harm for about so long and heals it; resolves once it is healed. */
  strike(stage: Stage, ms: number): Promise<void>
  /** How often it may strike next to others that are quick: 1 unless given. */
  weight?: number
  /** Only with these; all unless given. */
  stores?: readonly StoreKind[]
}

/** Lanes rest now and then, so that something flows to be harmed. */
export const calm: Disturbance = {
  name: 'calm',
  strike: (_stage, ms) => sleep(5 * ms),
}

import type { SandboxGroup } from '../options.ts'
import type { SandboxEvent } from './sandbox-event.ts'

/** Who watches for what: the subjects of new events, and whom an event concerns. */
export interface Watch {
  /** The identifier groups with what each watches for now. */
  groups(): SandboxGroup[]
  /** Where an event shows that is about its identifiers. */
  placesOf(event: SandboxEvent): Places
}

/** Which groups show an event, and for whom: its subject first. */
export type Places = Pick<SandboxEvent, 'groupIds' | 'identifiers'>

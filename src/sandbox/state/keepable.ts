/** A part whose state survives a restart, as plain JSON. */
export interface Keepable {
  snapshot(): unknown
  /** Takes the place of what the part began with; throws where `kept` is no snapshot of it. */
  restore(kept: unknown): void
}

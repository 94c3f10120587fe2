export interface LedgerConfig {
  /** How long a mark is remembered after its last sight. */
  dedupeHorizonMs: number
  /** How long the payload is kept after the last item became final. */
  payloadRetentionMs: number
  /** How long the story is kept after the last item became final. */
  storyRetentionMs: number
}

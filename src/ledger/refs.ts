/** What the ledger hands out to name a piece of work; the only thing that a job carries. */
export type Ref =
  | { kind: 'item'; recordId: string; index: number; sink: string }
  | { kind: 'batch'; batchId: string; sink: string }
  | { kind: 'collection'; sink: string }
  | { kind: 'gathering'; id: string; sink: string }

/**
 * `i:<record>:<index>:<sink>` an item, `b:<batch>:<sink>` a sealed message, `c:<sink>` what a sink
 * collects for its next batch, `c:<gathering>:<sink>` what waits for company; throws on anything else.
 */
export function parseRef(text: string): Ref {
  const [kind, ...rest] = text.split(':')
  if (kind === 'i' && rest.length === 3) {
    return { kind: 'item', recordId: rest[0] ?? '', index: Number(rest[1]), sink: rest[2] ?? '' }
  }
  if (kind === 'b' && rest.length === 2) {
    return { kind: 'batch', batchId: rest[0] ?? '', sink: rest[1] ?? '' }
  }
  if (kind === 'c' && rest.length === 2) {
    return { kind: 'gathering', id: rest[0] ?? '', sink: rest[1] ?? '' }
  }
  if (kind === 'c' && rest.length === 1) return { kind: 'collection', sink: rest[0] ?? '' }
  throw new Error(`not a ledger reference: ${text}`)
}

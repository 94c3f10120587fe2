import { parseItem } from '../../../src/feed-types/events.ts'
import type { DeliveryMember } from '../../../src/sinks/sink.ts'
import { aMember } from '../../support/deliveries.ts'
import { bytesOf } from './bytes.ts'

const types = ['paste', 'stealer_log', 'ransomleak', 'chat_message', 'cc', 'lookalike', 'leak']

/** An event with the texts of the bytes wherever the service may put some, as it comes out of the parser. */
export function fuzzedMember(data: Uint8Array): DeliveryMember | undefined {
  const bytes = bytesOf(data)
  const shape = bytes.byte()
  const texts = bytes.texts()
  const text = (index: number): string => texts[index % Math.max(1, texts.length)] ?? ''
  const parsed = parseItem({
    metadata: {
      uid: `paste/${text(0)}`,
      type: shape % 2 ? types[shape % types.length] : text(1),
      severity: shape % 3 ? 'high' : text(2),
      estimated_created_at: shape % 5 ? '2026-11-01T12:00:00Z' : text(3),
      flare_url: shape % 7 ? 'https://app.example.com/x' : `https://${text(4)}`,
    },
    tenant_metadata: { tags: texts.slice(0, 12), notes: text(5) },
    identifiers: texts.slice(0, 12).map((name, id) => ({ id, name })),
    highlights: Object.fromEntries(texts.slice(0, 6).map((one, at) => [text(at + 1), [one]])),
  })
  if (!parsed.ok) return undefined
  const detail = { data: Object.fromEntries(texts.map((one, at) => [text(at + 2), one])) }
  return aMember({ event: parsed.event, detail })
}

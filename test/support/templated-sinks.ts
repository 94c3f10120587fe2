/** Sinks with templates, and what they would send of a delivery. */
import { systemClock } from '../../src/lib/clock.ts'
import { createSink } from '../../src/sinks/create-sink.ts'
import type { Delivery, Preview } from '../../src/sinks/sink.ts'
import type { TemplateFailure } from '../../src/sinks/templates/template-config.ts'
import { parseConfig } from '../../src/config/load.ts'
import { aDelivery } from './deliveries.ts'
import { silent } from './ledger.ts'

export const sinkTypes = {
  slack: 'url: https://hooks.example.com/x',
  teams: 'url: https://flow.example.com/x?sig=1',
  pagerduty: 'routing_key: 0123456789abcdef0123456789abcdef',
  email: 'smtp: "smtps://a:b@mail.example.com", from: a@b.example, to: [c@d.example]',
  webhook: 'url: https://siem.example.com/x',
} as const

export type SinkType = keyof typeof sinkTypes
export type Templates = Readonly<Record<string, string>>

/** A configuration with one sink, `soc`. Throws ConfigError. */
export function parseTemplated(
  type: SinkType,
  templates: Templates,
  { more = '', file = 'tocsin.yaml' } = {},
): ReturnType<typeof parseConfig> {
  const text = `accounts: { main: { base_url: "https://api.example.com", api_key: fw_key } }
feeds: { brand: { type: events, identifier_group: 1 } }
sinks:
  soc: { type: ${type}, ${sinkTypes[type]}, ${more}
    templates: ${JSON.stringify(templates)} }
route: { sinks: [soc] }
`
  return parseConfig(text, { file, env: {} })
}

export interface Shown {
  preview: Preview
  failures: TemplateFailure[]
}

/** Shows a delivery as the sink would send it, by its second rendering. */
export async function showTemplated(
  type: SinkType,
  templates: Templates,
  content: Partial<Delivery> = {},
  options: { more?: string } = {},
): Promise<Shown> {
  const [config] = parseTemplated(type, templates, options).config.sinks
  const failures: TemplateFailure[] = []
  const sink = await createSink(config!, {
    logger: silent,
    clock: systemClock,
    onTemplateFailure: (failure) => failures.push(failure),
  })
  const delivery = aDelivery(sink, content)
  sink.preview!(delivery)
  failures.length = 0
  const preview = sink.preview!(delivery)
  await sink.close()
  return { preview, failures }
}

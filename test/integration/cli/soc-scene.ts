/** A ledger with sinks of every kind, digests among them, for the commands of a SOC's daily work. */
import { outletsOf } from '../../../src/delivery/outlets.ts'
import type { Config } from '../../../src/config/config.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { placeItem } from '../../../src/grouping/placement.ts'
import type { ThreatEvent } from '../../../src/event.ts'
import type { RoutedEvent } from '../../../src/store/intake.ts'
import { beginAttempt, type Outcome, settleAttempt } from '../../support/attempts.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { createKeys, type Keys } from '../../../src/redis/keys.ts'
import { type RedisForTests, routed, takeIn } from '../../support/ledger.ts'
import { aFile } from './tocsin.ts'
import { destinationsBySink } from '../../../src/operator/recipients.ts'

export interface SocScene {
  keys: Keys
  ledger: AccountLedger
  second: AccountLedger
  parsed: Config
  /** What every command is told. */
  config: [string, string]
  /** Takes events in for sinks, each where its sink collects, as a page of `main` or another ledger. */
  show(sinks: string[], events: Partial<ThreatEvent>[], ledger?: AccountLedger): Promise<void>
  /** Ends one attempt at everything of a sink that is due. */
  attempt(sink: string, result: Outcome): Promise<void>
}

let prefixes = 0

export async function aSocScene(
  tests: RedisForTests,
  change: (text: string) => string = (text) => text,
): Promise<SocScene> {
  const prefix = `soc${(prefixes += 1)}`
  const keys = createKeys(prefix)
  const text = change(configText(tests.server.url, prefix))
  const { config: parsed } = parseConfig(text, { file: 'tocsin.yaml', env: {} })
  const [ledger, second] = [
    await tests.ledger({ keys }),
    await tests.ledger({ keys, account: 'second' }),
  ]
  const place = placer(parsed)
  return {
    keys,
    ledger: ledger,
    second,
    parsed,
    config: ['--config', aFile('tocsin.yaml', text)],
    async show(sinks, events, into = ledger) {
      const routedEvents = events.map((event) => place(event, sinks))
      await takeIn(into, routedEvents, { labels: { team: 'brand' } })
    },
    async attempt(sink, result) {
      for (const ref of await ledger.redis.zrange(ledger.key('due', sink), '0', '-1')) {
        await beginAttempt(ledger, ref, 't', 30_000)
        await settleAttempt(ledger, { ref, token: 't', replica: 'r1' }, result)
      }
    },
  }
}

function placer(config: Config): (event: Partial<ThreatEvent>, sinks: string[]) => RoutedEvent {
  const destinations = destinationsBySink(config)
  const collecting = outletsOf(config.sinks)
  return (overrides, sinks) => {
    const plan = routed(
      overrides,
      sinks.flatMap((sink) => destinations.get(sink)?.map(({ id }) => id) ?? [sink]),
    )
    const items = plan.items.map((item) => {
      const sink = collecting.get(item.sink)
      const asked = { destination: item.destination, severity: plan.event.severity }
      const grouping = { route: 'root', waitMs: 0, labels: {} }
      const where = { ...asked, feed: 'brand', isBacklog: false }
      return sink ? { ...item, ...placeItem(sink, where, grouping, Date.now()) } : item
    })
    return { ...plan, items }
  }
}

function configText(redisUrl: string, prefix: string): string {
  return `redis: { url: "${redisUrl}", prefix: ${prefix} }
accounts:
  main: { base_url: "http://127.0.0.1:9", api_key: fw_key }
  second: { base_url: "http://127.0.0.1:9", api_key: fw_key }
feeds:
  brand: { type: events, account: main, identifier_group: 1042, labels: { team: brand } }
sinks:
  soc: { type: slack, url: "https://hooks.slack.com/services/T0/B0/hush-hush" }
  siem: { type: webhook, url: "https://siem.example.com/hook", batch: { max: 10, wait: 1s } }
  lake: { type: webhook, url: "https://lake.example.com/hook" }
  oncall:
    type: email
    smtp: "smtp://u:hush-hush@127.0.0.1"
    from: tocsin@example.com
    to: [ann@example.com, bob@example.com]
    digest: { schedule: '0 8 * * *', immediate: critical }
  news:
    type: slack
    url: "https://hooks.slack.com/services/T0/B1/hush-hush"
    digest: { schedule: '0 8 * * *', send_empty: false }
route: { sinks: [soc, siem, lake, oncall, news] }
silences:
  - matchers: ['type="chat"']
    until: 2026-01-01T00:00:00Z
    owner: al
    reason: of yesterday
    max_severity: low
`
}

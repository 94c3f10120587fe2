/** The alerts of an asset group: made up, and the same at each reading. */
import type { WireAlert } from '../../service/wire/alerts.ts'
import { zoneless } from '../history/draft.ts'
import type { SandboxGroup } from '../options.ts'
import { createRandom, hashOf, type Random } from '../random.ts'
import type { Asked, MonitoringParts, MonitoringRoute } from './monitoring-requests.ts'
import { integerOf, ownOf } from './refusal.ts'

export function alertRoutes({ settings }: MonitoringParts): MonitoringRoute[] {
  function read({ params, tenantId, organizationId }: Asked): unknown {
    const id = integerOf(params['id'] ?? '', 'assets_group_id')
    const { groups, alertsAs } = settings
    const found = groups.find((known) => known.id === id)
    const group = ownOf(found, { version: 'v2', what: 'assets group', tenantId })
    const alerts = alertsOf(group, organizationId)
    const isObject = alertsAs === 'object' || (alertsAs === 'either' && alerts.length === 1)
    return { alerts: isObject ? alerts[0] : alerts }
  }

  return [{ method: 'GET', path: '/firework/v2/assets/groups/:id/alerts', answer: read }]
}

/** Channels and what configures them, secrets included (facts.md 7). */
const channels: readonly { type: string; params: (random: Random) => Record<string, unknown> }[] = [
  {
    type: 'email',
    params: () => ({ email: 'soc@example.com', json_attachment: false, csv_attachment: true }),
  },
  {
    type: 'slack',
    params: (random) => ({ webhook_url: `https://slack.example/services/${random.hex(24)}` }),
  },
  {
    type: 'webhook',
    params: (random) => ({
      webhook_url: 'https://hooks.example/threats',
      secret: random.hex(40),
      custom_headers: { 'X-Team': 'soc' },
    }),
  },
  {
    type: 'splunk',
    params: (random) => ({ api_token: random.hex(32), netloc: 'splunk.example', index: 'threats' }),
  },
]

/** Groups with an even id have two alerts, the others one. */
function alertsOf(group: SandboxGroup, organizationId: number): WireAlert[] {
  return Array.from({ length: group.id % 2 === 0 ? 2 : 1 }, (_, index) =>
    alertOf(group, organizationId, index),
  )
}

function alertOf(group: SandboxGroup, organizationId: number, index: number): WireAlert {
  const random = createRandom(hashOf(`alert/${group.id}/${index}`))
  const { type, params } = random.pick(channels)
  const startMs = Date.UTC(2026, 0, 1) + random.int(0, 300) * 86_400_000
  const id = group.id * 10 + index
  return {
    id,
    type,
    name: `${group.name} (${type})`,
    frequency: random.pick([0, 3600, 86_400]),
    start_at: zoneless(startMs),
    params: params(random),
    feed_url: `https://app.example.com/#/groups/${group.id}`,
    feed_target_type: 'assets/groups',
    feed_target_id: group.id,
    created_at: zoneless(startMs - 3_600_000),
    tenant_id: group.tenantId,
    organization_id: organizationId,
    search_types: random.pick([[], ['illicit_networks', 'leaks'], ['open_web']]),
    experimental_search_types: [],
    risks: random.pick([[], [3, 4, 5], [5]]),
    tenant_alert_channel_id: 90_000 + id,
  }
}

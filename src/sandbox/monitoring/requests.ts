/** Assets, matching policies and alerts over HTTP. */
import type { FastifyInstance, RouteHandlerMethod } from 'fastify'
import { z } from 'zod'
import {
  assetCreation,
  assetReplacement,
  type WireAlert,
  wireAsset,
} from '../../upstream/resources/assets.ts'
import { orders } from '../../upstream/resources/enumerations.ts'
import { policyAssignment, policyCreation } from '../../upstream/resources/policies.ts'
import { findGrant, type Tokens } from '../api/guard.ts'
import { formatZonelessTime } from '../history/draft.ts'
import { createRandom, hashText, type Random, type SandboxGroup } from '../options.ts'
import { type RequestLog, validationEntry } from '../server.ts'
import { chooseGroup, identifierRoutes, toContent } from './identifiers.ts'
import {
  createHandler,
  invalidInput,
  listPage,
  type MonitoringParts,
  type MonitoringRoute,
  parseInteger,
  parseWith,
  requireOwn,
  type TenantRequest,
} from './route.ts'
import {
  type AssetContent,
  toAssetItem,
  type AssetWriting,
  toAssignmentItem,
  luceneProblem,
  toPolicyItem,
  type SandboxAsset,
  type SandboxAssignment,
  type SandboxPolicy,
} from './store.ts'

const spellings = { underscore: 'matching_policies', hyphen: 'matching-policies' } as const

export function addMonitoring(
  app: FastifyInstance,
  parts: MonitoringParts & { log: RequestLog; tokens: Tokens },
): void {
  const { settings, log, tokens } = parts
  const handlerFor = ({ answer }: MonitoringRoute): RouteHandlerMethod =>
    createHandler((request) => {
      const grant = findGrant(request, tokens)
      return answer({
        // `guard` lets no request through without a grant.
        tenantId: grant?.tenantId ?? 0,
        organizationId: grant?.organizationId ?? 0,
        params: request.params as Record<string, string>,
        query: request.query,
        body: log.entryFor(request).body,
      })
    })

  const plainRoutes = [...assetRoutes(parts), ...identifierRoutes(parts), ...alertRoutes(parts)]
  for (const route of plainRoutes) {
    const isThere = settings.undescribed || !route.isUndescribed
    const missing =
      route.method === 'POST'
        ? plainAnswer(405, 'Method Not Allowed')
        : plainAnswer(404, 'Not Found')
    app.route({
      method: route.method,
      url: route.path,
      handler: isThere ? handlerFor(route) : missing,
    })
  }
  for (const [spelling, word] of Object.entries(spellings)) {
    const base = `/firework/v4/${word}`
    if (settings.policyPaths !== 'both' && settings.policyPaths !== spelling) {
      for (const url of [base, `${base}/*`]) app.all(url, plainAnswer(404, 'Not Found'))
      continue
    }
    for (const route of [...policyRoutes(parts), ...assignmentRoutes(parts)]) {
      const isThere = settings.undescribed || !route.isUndescribed
      const handler = isThere ? handlerFor(route) : plainAnswer(405, 'Method Not Allowed')
      app.route({ method: route.method, url: base + route.path, handler })
    }
  }
}

/** Answers as the framework of the real API does for unknown routes and methods. */
function plainAnswer(status: number, detail: string): RouteHandlerMethod {
  return (_request, reply) => reply.code(status).send({ detail })
}

/** Routes that create, show, replace, toggle and delete assets (docs/api-notes.md, Assets). */
function assetRoutes(parts: MonitoringParts): MonitoringRoute[] {
  const { monitoring, settings, history } = parts
  const { assets, assignments } = monitoring
  const base = '/firework/v2/assets/'

  function showAsset(asset: SandboxAsset): unknown {
    const isHere = (event: { identifiers: { id: number }[] }): boolean =>
      event.identifiers.some(({ id }) => id === asset.id)
    const count = history.all().filter(isHere).length
    return { asset: toAssetItem(asset, count, settings.now()) }
  }

  function requireOwnAsset({ params, tenantId }: TenantRequest): SandboxAsset {
    const id = parseInteger(params['id'] ?? '', 'asset_id')
    return requireOwn(assets.get(id), { version: 'v2', what: 'asset', tenantId })
  }

  function create(request: TenantRequest): unknown {
    const { tenantId } = request
    const given = parseWith(anyAssetCreation, request.body, { version: 'v2', part: 'body' })
    const groupId = chooseGroup(given.assets_group_id, tenantId, parts)
    const content = toContent(given, { id: assets.nextId(), attributes: [] })
    const writing = { ...toWriting(given, content), isDisabled: false, others: {} }
    return showAsset(assets.create({ tenantId, groupId }, writing))
  }

  function replace(request: TenantRequest): unknown {
    const { id, attributes } = requireOwnAsset(request)
    const given = parseWith(anyAssetReplacement, request.body, { version: 'v2', part: 'body' })
    const content = toContent(given, { id, attributes })
    const isDisabled = given.is_disabled ?? false
    const others = Object.fromEntries(
      Object.entries(given).filter(([key]) => !knownFields.has(key)),
    )
    return showAsset(assets.change(id, { ...toWriting(given, content), isDisabled, others }))
  }

  function toggle(request: TenantRequest): unknown {
    const { id } = requireOwnAsset(request)
    const given = parseWith(assetToggle, request.body, { version: 'v2', part: 'body' })
    return showAsset(assets.change(id, { isDisabled: given.is_disabled }))
  }

  function remove(request: TenantRequest): unknown {
    const { id } = requireOwnAsset(request)
    assets.delete(id)
    assignments.forgetIdentifier(id)
    return null
  }

  return [
    { method: 'POST', path: base, answer: create },
    { method: 'GET', path: `${base}:id`, answer: (asked) => showAsset(requireOwnAsset(asked)) },
    { method: 'DELETE', path: `${base}:id`, answer: remove },
    { method: 'PUT', path: `${base}:id`, answer: replace },
    { method: 'POST', path: `${base}:id/toggle`, answer: toggle },
  ]
}

/** Unknown fields are ignored, as the API does. */
const anyAssetCreation = assetCreation.strip()
const anyAssetReplacement = assetReplacement.extend({ is_disabled: z.boolean().nullish() })
const assetToggle = z.object({ is_disabled: z.boolean() })

/**
 * Fields that clients write and fields that only the API sets; any others are stored as they are.
 */
const knownFields = new Set(Object.keys(wireAsset.shape))

interface GivenAsset extends Pick<AssetWriting, 'name' | 'type' | 'data'> {
  search_types: string[]
  experimental_search_types?: string[] | null | undefined
  risks?: number[] | null | undefined
}

/** Fields left out are reset. */
function toWriting(
  given: GivenAsset,
  content: AssetContent,
): Omit<AssetWriting, 'isDisabled' | 'others'> {
  return {
    name: given.name,
    type: given.type,
    searchTypes: given.search_types,
    experimentalSearchTypes: given.experimental_search_types ?? [],
    risks: given.risks ?? [],
    ...content,
  }
}

/**
 * Routes that create, read, change and delete matching policies (docs/api-notes.md, Matching
 * policies).
 */
function policyRoutes({ monitoring, settings }: MonitoringParts): MonitoringRoute[] {
  const { policies, assignments } = monitoring
  const requirePolicy = (request: TenantRequest): SandboxPolicy =>
    requireOwnPolicy(request, monitoring)

  function create({ body, tenantId }: TenantRequest): unknown {
    return toPolicyItem(policies.create({ tenantId, ...parsePolicy(body) }))
  }

  function remove(request: TenantRequest): unknown {
    const { uuid } = requirePolicy(request)
    policies.delete(uuid)
    assignments.forget(uuid)
    return null
  }

  function update(request: TenantRequest): unknown {
    const { uuid, type } = requirePolicy(request)
    const { name, value } = parsePolicy({ ...toObject(request.body), type })
    return toPolicyItem(policies.change(uuid, { name, value }))
  }

  function list({ query, tenantId }: TenantRequest): unknown {
    const owned = policies.all().filter((policy) => policy.tenantId === tenantId)
    const placed = owned.map((policy) => ({ ...policy, uid: policy.uuid }))
    return listPage(placed, query, { endMode: settings.endMode, itemOf: toPolicyItem })
  }

  return [
    { method: 'POST', path: '', answer: create },
    { method: 'GET', path: '/:uuid', answer: (request) => toPolicyItem(requirePolicy(request)) },
    { method: 'DELETE', path: '/:uuid', answer: remove },
    { method: 'PUT', path: '/:uuid', answer: update, isUndescribed: true },
    { method: 'GET', path: '', answer: list, isUndescribed: true },
  ]
}

/** Returns the policy that the path names; throws a Refusal unless it is the tenant's. */
function requireOwnPolicy(
  { params, tenantId }: TenantRequest,
  { policies }: MonitoringParts['monitoring'],
): SandboxPolicy {
  const found = policies.get(params['uuid'] ?? '')
  return requireOwn(found, { version: 'v4', what: 'matching policy', tenantId })
}

/** Unknown fields are ignored, as the API does. */
const anyPolicyCreation = z.discriminatedUnion(
  'type',
  policyCreation.options.map(withoutStrictness) as Kinds,
)

type Kinds = typeof policyCreation.options

function withoutStrictness(kind: Kinds[number]): z.ZodObject {
  return z.object({ ...kind.shape, value: z.object(kind.shape.value.shape) })
}

function parsePolicy(body: unknown): Pick<SandboxPolicy, 'name' | 'type' | 'value'> {
  const { name, type, value } = parseWith(anyPolicyCreation, body, { version: 'v4', part: 'body' })
  if (type === 'ASTP_COOKIES') return { name, type, value: { match_subdomains: false, ...value } }
  const problem = type === 'LUCENE_QUERY' ? luceneProblem(value.query) : null
  if (problem !== null && type === 'LUCENE_QUERY') {
    throw invalidInput(validationEntry(['body', 'value', 'query'], problem, value.query))
  }
  return { name, type, value }
}

/** Wraps a body that is not an object, so that it is refused as such. */
function toObject(body: unknown): object {
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? body : { body }
}

/** Routes that assign matching policies to identifiers (docs/api-notes.md, Matching policies). */
function assignmentRoutes(parts: MonitoringParts): MonitoringRoute[] {
  const { monitoring } = parts
  const { assets, policies, assignments } = monitoring
  const ofPolicy = '/:uuid/assignments'

  function ownIdentifier(id: number, tenantId: number): SandboxAsset {
    return requireOwn(assets.get(id), { version: 'v4', what: `identifier ${id}`, tenantId })
  }

  /** Looks everything up before anything changes. */
  function read(request: TenantRequest): {
    policy: SandboxPolicy
    given: GivenAssignment
    identifiers: SandboxAsset[]
  } {
    const policy = requireOwnPolicy(request, monitoring)
    const given = parseWith(policyAssignment.strip(), request.body, { version: 'v4', part: 'body' })
    const identifiers = given.identifier_ids.map((id) => ownIdentifier(id, request.tenantId))
    return { policy, given, identifiers }
  }

  function assign(request: TenantRequest): unknown {
    const { policy, given, identifiers } = read(request)
    const isClean = given.clean_past_events ?? false
    assignments.assign(policy.uuid, given.identifier_ids, isClean)
    if (isClean) for (const asset of identifiers) cleanPastEvents(asset, policy, parts)
    return null
  }

  function unassign(request: TenantRequest): unknown {
    const { policy, given } = read(request)
    assignments.unassign(policy.uuid, given.identifier_ids)
    return null
  }

  function listOfIdentifier({ params, tenantId }: TenantRequest): unknown {
    const { id } = ownIdentifier(parseInteger(params['id'] ?? '', 'identifier_id'), tenantId)
    return assignments.ofIdentifier(id).flatMap((assignment) => {
      const policy = policies.get(assignment.policyUuid)
      return policy ? [toAssignmentItem(assignment, policy)] : []
    })
  }

  return [
    { method: 'GET', path: '/by_identifier_id/:id', answer: listOfIdentifier },
    { method: 'POST', path: ofPolicy, answer: assign },
    {
      method: 'GET',
      path: ofPolicy,
      answer: (request) => listAssignments(request, parts),
      isUndescribed: true,
    },
    { method: 'DELETE', path: ofPolicy, answer: unassign, isUndescribed: true },
  ]
}

/** Lists the identifiers that a policy is assigned to. */
function listAssignments(
  request: TenantRequest,
  { monitoring, settings }: MonitoringParts,
): unknown {
  const { uuid } = requireOwnPolicy(request, monitoring)
  const placed = monitoring.assignments
    .all()
    .filter(({ policyUuid }) => policyUuid === uuid)
    .map((one) => ({ ...one, createdAtMs: one.assignedAtMs, uid: String(one.identifierId) }))
  const itemOf = (one: SandboxAssignment): unknown => ({
    identifier_id: one.identifierId,
    identifier_name: monitoring.assets.get(one.identifierId)?.name,
    clean_past_events: one.cleanPastEvents,
    assigned_at: new Date(one.assignedAtMs).toISOString(),
  })
  return listPage(placed, request.query, { endMode: settings.endMode, itemOf })
}

type GivenAssignment = z.infer<typeof policyAssignment>

/** Removes past events from `asset` that `policy` does not admit. */
function cleanPastEvents(
  asset: SandboxAsset,
  policy: SandboxPolicy,
  { monitoring, history }: MonitoringParts,
): void {
  for (const event of history.all()) {
    const places = monitoring.placesAfterPolicy(event, asset, policy)
    if (places) history.place(event.uid, places)
  }
}

/** Routes for the alerts of an asset group, which are generated and the same on each read. */
function alertRoutes({ settings }: MonitoringParts): MonitoringRoute[] {
  function list({ query, tenantId, organizationId }: TenantRequest): unknown {
    parseWith(z.object({ order_type: z.enum(orders).optional() }), query, {
      version: 'v4',
      part: 'query',
    })
    const alerts = settings.groups
      .filter((group) => group.tenantId === tenantId)
      .flatMap((group) => makeAlerts(group, organizationId))
      .map((alert) => ({ alert, createdAtMs: alert.id, uid: String(alert.id) }))
    const itemOf = ({ alert }: { alert: WireAlert }): unknown => toTenantAlert(alert)
    return listPage(alerts, query, { endMode: settings.endMode, itemOf, most: 10, order: 'asc' })
  }

  function read({ params, tenantId, organizationId }: TenantRequest): unknown {
    const id = parseInteger(params['id'] ?? '', 'assets_group_id')
    const { groups, alertsAs } = settings
    const found = groups.find((known) => known.id === id)
    const group = requireOwn(found, { version: 'v2', what: 'assets group', tenantId })
    const alerts = makeAlerts(group, organizationId)
    const isObject = alertsAs === 'object' || (alertsAs === 'either' && alerts.length === 1)
    return { alerts: isObject ? alerts[0] : alerts }
  }

  return [
    { method: 'GET', path: '/firework/v2/assets/groups/:id/alerts', answer: read },
    { method: 'GET', path: '/firework/v4/alerts/', answer: list },
  ]
}

/** An alert as v4 shows it: without what configures its channel. */
function toTenantAlert({
  params: _params,
  feed_url: _url,
  feed_target_type: _type,
  feed_target_id: id,
  tenant_alert_channel_id: channel,
  ...alert
}: WireAlert): unknown {
  return {
    ...alert,
    feed_definition: { type: 'group', id },
    alert_channel_id: channel,
    alert_channel: { id: channel, name: alert.name },
    updated_at: alert.created_at,
  }
}

/** Alert channels and their settings, secrets included (docs/api-notes.md, Alerts). */
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

/** Makes two alerts for groups with an even id, one for the others. */
function makeAlerts(group: SandboxGroup, organizationId: number): WireAlert[] {
  return Array.from({ length: group.id % 2 === 0 ? 2 : 1 }, (_, index) =>
    makeAlert(group, organizationId, index),
  )
}

function makeAlert(group: SandboxGroup, organizationId: number, index: number): WireAlert {
  const random = createRandom(hashText(`alert/${group.id}/${index}`))
  const { type, params } = random.pick(channels)
  const startMs = Date.UTC(2026, 0, 1) + random.int(0, 300) * 86_400_000
  const id = group.id * 10 + index
  return {
    id,
    type,
    name: `${group.name} (${type})`,
    frequency: random.pick([0, 3600, 86_400]),
    start_at: formatZonelessTime(startMs),
    params: params(random),
    feed_url: `https://app.example.com/#/groups/${group.id}`,
    feed_target_type: 'assets/groups',
    feed_target_id: group.id,
    created_at: formatZonelessTime(startMs - 3_600_000),
    tenant_id: group.tenantId,
    organization_id: organizationId,
    search_types: random.pick([[], ['illicit_networks', 'leaks'], ['open_web']]),
    experimental_search_types: [],
    risks: random.pick([[], [3, 4, 5], [5]]),
    tenant_alert_channel_id: 90_000 + id,
  }
}

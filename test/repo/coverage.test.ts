/** The table of operations has each operation of the API's description and of its public documents. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { operations } from '../../src/upstream/resources/operations.ts'

const root = join(import.meta.dirname, '../..')

/** The operations of the API's description, under the names that it gives their parameters. */
const described = [
  'POST /tokens/generate',
  'GET /tokens/test',
  'POST /firework/v4/credentials/global/_search',
  'GET /firework/v3/identifiers/{identifier_id}/feed/credentials',
  'POST /firework/v4/events/global/_search',
  'POST /firework/v4/events/identifier_groups/{identifier_group_id}/_search',
  'GET /firework/v4/events/',
  'GET /firework/v4/events/_expand',
  'GET /firework/v2/search/',
  'POST /firework/v2/search/',
  'POST /firework/v2/assets/',
  'PUT /firework/v2/assets/{asset_id}',
  'POST /firework/v2/assets/{asset_id}/toggle',
  'GET /firework/v2/assets/groups/{assets_group_id}/alerts',
  'POST /firework/v4/matching-policies',
  'GET /firework/v4/matching-policies/{policy_uuid}',
  'DELETE /firework/v4/matching-policies/{policy_uuid}',
  'POST /firework/v4/matching-policies/{policy_uuid}/assignments',
  'GET /firework/v4/matching-policies/by_identifier_id/{identifier_id}',
  'GET /firework/v4/threat_flow/reports/requests/{request_info_id}',
  'GET /firework/v4/threat_flow/reports/{report_id}',
  'POST /firework/v2/organizations/{organization_id}/tenants',
]

/** Operations that only the public documents have, under the names that these give their parameters. */
const published = [
  'POST /firework/v4/events/tenant/_search',
  'POST /firework/v4/events/identifiers/{identifier_id}/_search',
  'GET /firework/v4/events/filters/types',
  'GET /firework/v4/events/filters/severities',
  'GET /firework/v2/activities/',
  'GET /firework/v2/me/feed/credentials',
  'POST /firework/v2/me/feed/credentials',
  'POST /astp/v2/credentials/_search',
  'GET /firework/v2/me/tenants',
  'GET /firework/v4/identifiers/',
  'GET /firework/v3/identifiers/',
  'GET /firework/v3/identifiers/groups',
  'GET /firework/v2/assets/groups/',
  'POST /firework/v4/threat_flow/reports/requests',
  'GET /firework/v4/threat_flow/reports/',
  'POST /firework/v4/events/actions',
  'POST /firework/v4/credentials/actions',
  'PATCH /firework/v4/events/tenant/metadata',
  'GET /firework/v2/assets/{asset_id}',
  'DELETE /firework/v2/assets/{asset_id}',
  'GET /firework/v4/threat_flow/reports/{report_id}/download',
  'GET /firework/v4/healthz/',
  'GET /firework/v4/alerts/',
  'POST /astp/urls/by_credential_hash',
  'POST /astp/v2/cookies/_search',
  'POST /firework/v4/identifiers/',
  'GET /firework/v4/identifiers/{identifier_id}',
  'PUT /firework/v4/identifiers/{identifier_id}',
  'DELETE /firework/v4/identifiers/{identifier_id}',
  'GET /firework/v4/matching-policies',
  'PUT /firework/v4/matching-policies/{policy_uuid}',
  'GET /firework/v4/matching-policies/{policy_uuid}/assignments',
  'DELETE /firework/v4/matching-policies/{policy_uuid}/assignments',
]

test('every operation of the description and of the public documents has one row', () => {
  const rows = operations.map(({ method, path }) => `${method} ${path}`)
  expect(rows.toSorted()).toEqual([...described, ...published].toSorted())
  const names = operations.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  expect(names.filter((name) => !/^[a-z]+\.[a-z0-9-]+$/.test(name))).toEqual([])
})

/** POST operations that change something; most only ask. */
const posts = [
  'events.act',
  'credentials.act',
  'identifiers.create',
  'assets.create',
  'assets.toggle',
  'policies.create',
  'policies.assign',
  'reports.request',
  'tenants.create',
]

test('every operation that changes something says so, and no other', () => {
  const writes = operations.filter(
    ({ name, method }) => ['PUT', 'PATCH', 'DELETE'].includes(method) || posts.includes(name),
  )
  expect(operations.filter(({ changes }) => changes)).toEqual(writes)
  expect(writes).toHaveLength(posts.length + 8)
})

test('what only the public documents have names the permission that it takes', () => {
  const optional = new Set(published)
  const unnamed = operations.filter(
    ({ method, path, permission }) => optional.has(`${method} ${path}`) && !permission,
  )
  expect(unnamed.map(({ name }) => name)).toEqual([])
})

test('the page stays short enough to be read', () => {
  const architecture = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  expect(architecture.split('\n').length).toBeLessThanOrEqual(150)
})

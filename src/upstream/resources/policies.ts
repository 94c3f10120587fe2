/** Matching policies, and their assignments to identifiers (docs/api-notes.md, Matching policies). */
import { z } from 'zod'
import { orders } from './enumerations.ts'
import { cursor, nothing, operation, pagedOperation } from './operation.ts'

const root = '/firework/v4/matching-policies'

const text = z.string()

/** A policy as the API returns it. Its type is `policy_type` here, but `type` on creation. */
export const wirePolicy = z.looseObject({
  uuid: text.min(1),
  name: text,
  policy_type: text,
  value: z.record(text, z.unknown()).nullish(),
  created_at: text.nullish(),
  last_updated_at: text.nullish(),
})

export const wirePolicyAssignment = z.looseObject({
  matching_policy: wirePolicy,
  assigned_at: text.nullish(),
  clean_past_events: z.boolean().nullish(),
})

/** Only in the public documentation (docs/api-notes.md, Matching policies). */
const matchModes = [
  'email_domain_only',
  'auth_domain_only',
  'auth_domain_and_email_domain',
] as const

const name = text.min(1)
const keywords = z.strictObject({ keywords: z.array(text.min(1)).min(1) })

/** Creates a policy; its type decides its value (docs/api-notes.md, Matching policies). */
export const policyCreation = z.discriminatedUnion('type', [
  z.strictObject({ name, type: z.literal('INCLUDED_KEYWORDS'), value: keywords }),
  z.strictObject({ name, type: z.literal('EXCLUDED_KEYWORDS'), value: keywords }),
  z.strictObject({
    name,
    type: z.literal('LUCENE_QUERY'),
    value: z.strictObject({ query: text.min(1) }),
  }),
  z.strictObject({
    name,
    type: z.literal('ASTP_COOKIES'),
    value: z.strictObject({
      cookie_names: z.array(text.min(1)).min(1),
      match_subdomains: z.boolean().optional(),
    }),
  }),
  z.strictObject({
    name,
    type: z.literal('ASTP_DOMAIN'),
    value: z.strictObject({ match_mode: z.enum(matchModes).optional() }),
  }),
])
export type PolicyCreation = z.input<typeof policyCreation>

export const policyAssignment = z.strictObject({
  identifier_ids: z.array(z.int().min(1)).min(1),
  clean_past_events: z.boolean().optional(),
})

export const wireAssignee = z.looseObject({ identifier_id: z.number() })

/** At most 25, which is the default (docs/api-notes.md, Page sizes). */
const listQuery = z.strictObject({
  order: z.enum(orders).optional(),
  size: z.int().min(1).max(25).optional(),
  from: cursor,
})

export const policyOperations = {
  create: operation({
    name: 'policies.create',
    summary: 'create a matching policy',
    request: `POST ${root}`,
    body: policyCreation,
    answer: wirePolicy,
    changes: true,
  }),
  get: operation({
    name: 'policies.get',
    summary: 'read a matching policy',
    request: `GET ${root}/{policy_uuid}`,
    answer: wirePolicy,
  }),
  delete: operation({
    name: 'policies.delete',
    summary: 'delete a matching policy',
    request: `DELETE ${root}/{policy_uuid}`,
    answer: nothing,
    changes: true,
  }),
  assign: operation({
    name: 'policies.assign',
    summary: 'assign a matching policy to identifiers',
    request: `POST ${root}/{policy_uuid}/assignments`,
    body: policyAssignment,
    answer: nothing,
    changes: true,
  }),
  ofIdentifier: operation({
    name: 'policies.of-identifier',
    summary: 'list the matching policies of an identifier',
    request: `GET ${root}/by_identifier_id/{identifier_id}`,
    answer: z.array(wirePolicyAssignment),
    item: wirePolicyAssignment,
  }),
  list: pagedOperation({
    name: 'policies.list',
    summary: 'list matching policies',
    request: `GET ${root}`,
    query: listQuery,
    item: wirePolicy,
    permission: 'to read matching policies',
  }),
  update: operation({
    name: 'policies.update',
    summary: 'replace the name and value of a matching policy',
    request: `PUT ${root}/{policy_uuid}`,
    body: z.strictObject({ name, value: z.record(text, z.unknown()) }),
    answer: wirePolicy,
    changes: true,
    permission: 'to change matching policies',
  }),
  assignments: pagedOperation({
    name: 'policies.assignments',
    summary: 'list the identifiers that a matching policy is assigned to',
    request: `GET ${root}/{policy_uuid}/assignments`,
    query: listQuery,
    item: wireAssignee,
    permission: 'to read matching policies',
  }),
  unassign: operation({
    name: 'policies.unassign',
    summary: 'take a matching policy away from identifiers',
    request: `DELETE ${root}/{policy_uuid}/assignments`,
    body: policyAssignment,
    answer: nothing,
    changes: true,
    permission: 'to change matching policies',
  }),
} as const

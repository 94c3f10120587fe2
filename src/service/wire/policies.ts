/** Matching policies and to which identifiers they are assigned: as read, and as written. */
import { z } from 'zod'

const text = z.string()

/** A policy as the service gives it: its type is named `policy_type` here, `type` on creation. */
export const wirePolicy = z.looseObject({
  uuid: text.min(1),
  name: text,
  policy_type: text,
  value: z.record(text, z.unknown()).nullish(),
  created_at: text.nullish(),
  last_updated_at: text.nullish(),
})
export type WirePolicy = z.infer<typeof wirePolicy>

export const wirePolicyAssignment = z.looseObject({
  matching_policy: wirePolicy,
  assigned_at: text.nullish(),
  clean_past_events: z.boolean().nullish(),
})
export type WirePolicyAssignment = z.infer<typeof wirePolicyAssignment>

/** Of the public documents alone (OpenAPI v4, policies). */
const matchModes = [
  'email_domain_only',
  'auth_domain_only',
  'auth_domain_and_email_domain',
] as const

const name = text.min(1)
const keywords = z.strictObject({ keywords: z.array(text.min(1)).min(1) })

/** The value of a policy, by its type (facts.md 6). */
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
export type PolicyAssignment = z.input<typeof policyAssignment>

/** A page of all policies; an operation that the description does not have (facts.md 3). */
export const wirePolicyPage = z.looseObject({
  items: z.array(wirePolicy),
  next: text.nullish(),
})
export type WirePolicyPage = z.infer<typeof wirePolicyPage>

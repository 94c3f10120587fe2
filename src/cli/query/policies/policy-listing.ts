/** Matching policies as the commands show them, alone or as they are assigned to an identifier. */
import type { WirePolicy, WirePolicyAssignment } from '../../../service/wire/policies.ts'
import { harmless } from '../../words.ts'
import type { Column, Listing } from '../listing.ts'

/** As the description lists them. */
const policyKeys = ['uuid', 'name', 'policy_type', 'value', 'created_at', 'last_updated_at']

export const policyListing: Listing<WirePolicy> = {
  columns: columnsOf((policy) => policy),
  below: (policy) => [valueLine(policy)],
  json: (policy) => policy,
  csv: policyKeys,
}

export const assignmentListing: Listing<WirePolicyAssignment> = {
  columns: columnsOf(({ matching_policy: policy }) => policy),
  below: ({ matching_policy: policy, assigned_at: at, clean_past_events: isClean }) => [
    valueLine(policy),
    `assigned ${harmless(at ?? 'at an unknown time')}, past events ${isClean === true ? 'cleaned' : 'kept'}`,
  ],
  json: (assignment) => assignment,
  csv: [...policyKeys.map((key) => `matching_policy.${key}`), 'assigned_at', 'clean_past_events'],
}

function columnsOf<Row>(policyOf: (row: Row) => WirePolicy): Column<Row>[] {
  return [
    { title: 'UUID', width: 36, text: (row) => policyOf(row).uuid },
    { title: 'TYPE', width: 17, text: (row) => policyOf(row).policy_type },
    { title: 'NAME', width: 40, text: (row) => policyOf(row).name },
  ]
}

/** `keywords: breach, leak`; what no description knows as JSON. */
function valueLine({ value }: WirePolicy): string {
  const fields = Object.entries(value ?? {}).map(([key, held]) => `${key}: ${wordsOf(held)}`)
  return harmless(fields.join('; ') || 'no value', 1_000)
}

function wordsOf(held: unknown): string {
  if (typeof held === 'string') return held
  const isWords = Array.isArray(held) && held.every((word) => typeof word === 'string')
  return isWords ? held.join(', ') : JSON.stringify(held)
}

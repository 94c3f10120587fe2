/** Identifiers of v4 (assets), which servers have since 2026-06; the lists of v3; and groups. */
import { z } from 'zod'
import { assetTypes } from './enumerations.ts'
import { cursor, nothing, operation, pagedOperation } from './operation.ts'
import { lenient } from './page.ts'

const text = z.string()

/** An identifier in the shape of v4, or of v3; each leaves out fields that the other has. */
export const wireIdentifier = z.looseObject({
  id: z.int(),
  name: lenient.text,
  type: lenient.text,
  data: lenient.fields,
  group_id: lenient.number,
  categories: lenient.texts,
  search_types: lenient.texts,
  is_disabled: lenient.flag,
  enrichments: z.looseObject({ event_count: lenient.number }).nullish().catch(null),
  event_count: lenient.number,
  emerging_categories: lenient.texts,
  severities: lenient.texts,
  experimental_search_types: lenient.texts,
  risks: lenient.numbers,
  tenant_id: lenient.number,
  updated_at: lenient.text,
  data_updated_at: lenient.text,
})
export type WireIdentifier = z.infer<typeof wireIdentifier>

const newIdentifier = wireIdentifier
  .omit({
    type: true,
    search_types: true,
    event_count: true,
    experimental_search_types: true,
    risks: true,
    data_updated_at: true,
  })
  .extend({ data: z.looseObject({ type: lenient.text }).nullish().catch(null) })

const olderIdentifier = wireIdentifier.omit({
  categories: true,
  enrichments: true,
  emerging_categories: true,
  severities: true,
  updated_at: true,
})

const texts = z
  .array(text)
  .nullish()
  .transform((given) => given ?? [])

/** The fields of an identifier that a client writes, all of which a change must name. */
export const writtenIdentifier = z.object({
  name: text.nullish(),
  data: z.looseObject({ type: text }).meta({ examples: [{ type: 'domain', fqdn: 'example.com' }] }),
  categories: texts,
  emerging_categories: texts,
  severities: texts,
  group_id: z.int().nullish(),
  is_disabled: z.boolean().nullish(),
})
export type WrittenIdentifier = z.infer<typeof writtenIdentifier>

const wireWholeIdentifier = writtenIdentifier.loose().extend({
  id: z.int(),
  updated_at: text.nullish(),
  enrichments: z.looseObject({ event_count: z.number().nullish() }).nullish(),
})

const wireGroup = z.looseObject({ id: z.int(), name: lenient.text })

const wireCountedGroup = z.looseObject({
  group: wireGroup,
  identifier_count: lenient.number,
  event_count: lenient.number,
  total_identifier_count: lenient.number,
})
/** A group with its counts, in the shape of v3; one of v2 reads as a group without counts. */
export const wireGroupEntry = z.union([
  wireCountedGroup,
  wireGroup.transform((group) => ({ group })),
])
const root = '/firework/v4/identifiers/'

/** At most 100 at v4; the default is 20 (docs/api-notes.md, Page sizes). */
const page = { size: z.int().min(1).max(100).optional(), from: cursor }

const filters = {
  types: z.array(z.enum(assetTypes)).optional(),
  /** Left out: v4 lists both, v3 only those that are enabled. */
  is_disabled: z.boolean().optional(),
  order_by: z.enum(['id', 'name', 'type']).optional(),
}

const toRead = 'to read identifiers'

export const identifierOperations = {
  list: pagedOperation({
    name: 'identifiers.list',
    summary: 'list identifiers',
    request: `GET ${root}`,
    query: z.strictObject({ group_id: z.int().min(1).optional(), ...filters, ...page }),
    item: newIdentifier,
    permission: toRead,
  }),
  listOlder: pagedOperation({
    name: 'identifiers.list-v3',
    summary: 'list identifiers in the shape of v3, which has more types',
    request: 'GET /firework/v3/identifiers/',
    query: z.strictObject({ parent_group_id: z.int().min(1).optional(), ...filters, ...page }),
    item: olderIdentifier,
    permission: toRead,
  }),
  create: operation({
    name: 'identifiers.create',
    summary: 'create an identifier',
    request: `POST ${root}`,
    body: writtenIdentifier.strict(),
    answer: wireWholeIdentifier,
    changes: true,
    permission: 'to change identifiers',
  }),
  get: operation({
    name: 'identifiers.get',
    summary: 'read an identifier',
    request: `GET ${root}{identifier_id}`,
    answer: wireWholeIdentifier,
    permission: toRead,
  }),
  replace: operation({
    name: 'identifiers.replace',
    summary: 'replace a whole identifier',
    request: `PUT ${root}{identifier_id}`,
    body: writtenIdentifier.strict(),
    answer: wireWholeIdentifier,
    changes: true,
    permission: 'to change identifiers',
  }),
  delete: operation({
    name: 'identifiers.delete',
    summary: 'delete an identifier, perhaps with what was found for it',
    request: `DELETE ${root}{identifier_id}`,
    answer: nothing,
    changes: true,
    permission: 'to change identifiers',
  }),
  groups: pagedOperation({
    name: 'groups.list',
    summary: 'list the groups of identifiers, with counts',
    request: 'GET /firework/v3/identifiers/groups',
    query: z.strictObject(page),
    item: wireCountedGroup,
    permission: 'to read groups of identifiers',
  }),
} as const

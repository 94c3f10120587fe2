/** Identifiers of v4 (assets), which servers have since 2026-06; the lists of v3; and groups. */
import { z } from 'zod'
import { assetTypes } from './enumerations.ts'
import { cursor, nothing, operation, pagedOperation } from './operation.ts'
import { lenient } from './page.ts'

const text = z.string()

/** An identifier of v4: its type stands within `data`. */
const wireIdentifier = z.looseObject({
  id: z.int(),
  name: lenient.text,
  data: z.looseObject({ type: lenient.text }).nullish().catch(null),
  group_id: lenient.number,
  is_disabled: lenient.flag,
  tenant_id: lenient.number,
  categories: lenient.texts,
  emerging_categories: lenient.texts,
  severities: lenient.texts,
  enrichments: z.looseObject({ event_count: lenient.number }).nullish().catch(null),
  updated_at: lenient.text,
})

/** An identifier of v3: its type stands beside `data`. */
export const olderIdentifier = z.looseObject({
  id: z.int(),
  name: lenient.text,
  type: lenient.text,
  data: lenient.fields,
  search_types: lenient.texts,
  experimental_search_types: lenient.texts,
  risks: lenient.numbers,
  event_count: lenient.number,
  is_disabled: lenient.flag,
  tenant_id: lenient.number,
  data_updated_at: lenient.text,
})
export type OlderIdentifier = z.infer<typeof olderIdentifier>

const texts = z
  .array(text)
  .nullish()
  .transform((given) => given ?? [])

/** The fields of an identifier that a client writes, all of which a change must name. */
export const writtenIdentifier = z.object({
  name: text.nullish(),
  data: z.looseObject({ type: text }),
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

const wireCountedGroup = z.looseObject({
  group: z.looseObject({ id: z.int(), name: lenient.text }),
  identifier_count: lenient.number,
  event_count: lenient.number,
  total_identifier_count: lenient.number,
})

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
    item: wireIdentifier,
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

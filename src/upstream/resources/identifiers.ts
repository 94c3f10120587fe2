/**
 * Identifiers (assets), one by one, and listed with their groups and the tenant's alerts. The first two have a newer and
 * an older operation: a server may have only one of them.
 */
import { z } from 'zod'
import type { AssetType } from './enumerations.ts'
import {
  type CallOptions,
  type OperationParts,
  pathPart,
  read,
  readWritten,
  type Request,
  write,
} from './operation.ts'
import { wireItems, wireSearchPage, type WireSearchPage } from './page.ts'

interface PageRequest extends CallOptions {
  /** The cursor as it was received; null for the first page. */
  from: string | null
  /** v4 allows 100; the default is 20 (docs/api-notes.md, Page sizes). */
  size: number
}

export interface IdentifierFilters {
  group?: number | undefined
  types?: readonly AssetType[] | undefined
  /** Undefined: v4 lists both, v3 only those that are enabled. */
  isDisabled?: boolean | undefined
  orderBy: 'id' | 'name' | 'type'
}

/** All operations use the basic tier. */
export interface IdentifierOperations {
  /** Returns one page of the tenant's identifiers. `GET /firework/v4/identifiers/`. */
  listIdentifiers(request: { filters: IdentifierFilters } & PageRequest): Promise<WireSearchPage>
  /** The same in the shape of v3, which has more types. `GET /firework/v3/identifiers/`. */
  listOlderIdentifiers(
    request: { filters: IdentifierFilters } & PageRequest,
  ): Promise<WireSearchPage>
  /** Returns a page of the tenant's groups, with counts. `GET /firework/v3/identifiers/groups`. */
  listGroups(request: PageRequest): Promise<WireSearchPage>
  /** Returns a page of all alerts of the tenant; at most 10. `GET /firework/v4/alerts/`. */
  listAlerts(request: PageRequest): Promise<WireSearchPage>
  /** Returns all groups, without counts. `GET /firework/v2/assets/groups/`. */
  listOlderGroups(asked: CallOptions): Promise<unknown[]>
}

export function createIdentifierOperations(parts: OperationParts): IdentifierOperations {
  async function readPage(
    path: string,
    query: URLSearchParams,
    { from, size, ...asked }: PageRequest,
  ): Promise<WireSearchPage> {
    query.set('size', String(size))
    if (from !== null) query.set('from', from)
    const request = { method: 'GET', path: `${path}?${query.toString()}`, pageSize: size } as const
    return read(parts, wireSearchPage, request, asked)
  }

  return {
    listIdentifiers: ({ filters, ...asked }) => readPage(root, toQuery(filters, 'group_id'), asked),
    listOlderIdentifiers: ({ filters, ...asked }) =>
      readPage('/firework/v3/identifiers/', toQuery(filters, 'parent_group_id'), asked),
    listGroups: (asked) =>
      readPage('/firework/v3/identifiers/groups', new URLSearchParams(), asked),
    listAlerts: (asked) => readPage('/firework/v4/alerts/', new URLSearchParams(), asked),
    async listOlderGroups(asked) {
      const request = { method: 'GET', path: '/firework/v2/assets/groups/' } as const
      return (await read(parts, wireGroupsAnswer, request, asked)).assets_groups ?? []
    },
  }
}

const root = '/firework/v4/identifiers/'

/** Identifiers of v4 one by one. Servers have these operations since 2026-06. */
interface SingleIdentifiers {
  create(body: WrittenIdentifier, asked: CallOptions): Promise<WholeIdentifier>
  get(id: number, asked: CallOptions): Promise<WholeIdentifier>
  /**
   * The request names all of an identifier, so what it is now is read first; undefined, and nothing
   * done, for an identity, which is not written as it is read (docs/api-notes.md, Assets).
   */
  change(
    id: number,
    change: (now: WrittenIdentifier) => WrittenIdentifier,
    asked: CallOptions,
  ): Promise<WholeIdentifier | undefined>
  remove(id: number, asked: CallOptions): Promise<null>
}

export function createSingleIdentifiers(parts: OperationParts): SingleIdentifiers {
  const pathOf = (id: number): string => `${root}${pathPart(id)}`

  async function send(
    request: Pick<Request, 'method' | 'path'>,
    body: WrittenIdentifier,
    asked: CallOptions,
  ): Promise<WholeIdentifier> {
    const whole = { ...request, body, secrets: secretTexts(body.data) }
    return readWritten(await write(parts, whole, asked), wireWholeIdentifier)
  }

  function get(id: number, asked: CallOptions): Promise<WholeIdentifier> {
    return read(parts, wireWholeIdentifier, { method: 'GET', path: pathOf(id) }, asked)
  }

  return {
    create: (body, asked) => send({ method: 'POST', path: root }, body, asked),
    get,
    async change(id, change, asked) {
      const now = writtenIdentifier.parse(await get(id, asked))
      if (now.data.type === 'identity') return undefined
      return send({ method: 'PUT', path: pathOf(id) }, change(now), asked)
    },
    async remove(id, asked) {
      await write(parts, { method: 'DELETE', path: pathOf(id) }, asked)
      return null
    },
  }
}

/** Matches field names whose value is a secret. */
const secretNames =
  /passw(?:or)?d|passphrase|passcode|pwd|secret|token|apikey|accesskey|privatekey|cookie|hash/i

/** Returns the values of a body that no message may show, recognized by their field names. */
export function secretTexts(value: unknown, isSecret = false): string[] {
  if (typeof value === 'string' || typeof value === 'number') return isSecret ? [String(value)] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) =>
    secretTexts(inner, isSecret || secretNames.test(name.replaceAll(/[^a-z]/gi, ''))),
  )
}

function toQuery(
  { group, types = [], isDisabled, orderBy }: IdentifierFilters,
  groupKey: string,
): URLSearchParams {
  const query = new URLSearchParams({ order_by: orderBy })
  if (group !== undefined) query.set(groupKey, String(group))
  if (isDisabled !== undefined) query.set('is_disabled', String(isDisabled))
  for (const type of types) query.append('types', type)
  return query
}

const text = z.string()
/** A malformed field reads as null, so that it does not cost the whole item. */
const optionalText = text.nullish().catch(null)
const optionalTexts = z.array(text).nullish().catch(null)
const optionalNumber = z.number().nullish().catch(null)

/** An identifier in the shape of v4, or of v3; each leaves out fields that the other has. */
export const wireIdentifier = z.looseObject({
  id: z.int(),
  name: optionalText,
  type: optionalText,
  data: z.record(text, z.unknown()).nullish().catch(null),
  group_id: optionalNumber,
  categories: optionalTexts,
  search_types: optionalTexts,
  is_disabled: z.boolean().nullish().catch(null),
  enrichments: z.looseObject({ event_count: optionalNumber }).nullish().catch(null),
  event_count: optionalNumber,
})
export type WireIdentifier = z.infer<typeof wireIdentifier>

/** An alert of the tenant; how its channel is configured is not shown. */
export const wireTenantAlert = z.looseObject({
  id: z.int(),
  type: optionalText,
  name: optionalText,
  /** What it watches: `tenant`, or a `group` or `identifier` by its id. */
  feed_definition: z.looseObject({ type: optionalText, id: optionalNumber }).nullish().catch(null),
  search_types: optionalTexts,
  experimental_search_types: optionalTexts,
  risks: z.array(z.number()).nullish().catch(null),
  frequency: optionalNumber,
  alert_channel_id: optionalNumber,
})
export type WireTenantAlert = z.infer<typeof wireTenantAlert>

const texts = z
  .array(text)
  .nullish()
  .transform((given) => given ?? [])

/** The fields of an identifier that a client writes, all of which a change must name. */
const writtenIdentifier = z.object({
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

export type WholeIdentifier = z.infer<typeof wireWholeIdentifier>

const wireGroup = z.looseObject({ id: z.int(), name: optionalText })

/** A group with its counts, in the shape of v3; one of v2 reads as a group without counts. */
export const wireGroupEntry = z.union([
  z.looseObject({
    group: wireGroup,
    identifier_count: optionalNumber,
    total_identifier_count: optionalNumber,
    event_count: optionalNumber,
  }),
  wireGroup.transform((group) => ({ group })),
])
export interface WireGroupEntry {
  group: z.infer<typeof wireGroup>
  identifier_count?: number | null | undefined
  total_identifier_count?: number | null | undefined
  event_count?: number | null | undefined
}

/** The description has an object where servers may send a list, as with alerts. */
const wireGroupsAnswer = z.looseObject({ assets_groups: wireItems.nullish() })

/**
 * The wire format, shared by the client and the sandbox. Unknown fields, types and severities pass,
 * since the API may grow; the fields that Tocsin reads are checked strictly. docs/api-notes.md says
 * what the API description leaves open.
 */
import { z } from 'zod'

/** Fields that mark an item: events have one of the first four, credentials have `id`. */
const itemKeys = ['metadata', 'uid', 'header', 'activity', 'id']

/**
 * A list of items. Each is parsed alone later, so that one bad item does not block the others. Null
 * reads as no items, a bare item as a list of one; anything else, or a missing list, is a contract
 * error.
 */
export const wireItems = z.union([
  z.array(z.unknown()),
  z.null().transform((): unknown[] => []),
  z
    .looseObject({})
    .refine((one) => itemKeys.some((key) => Object.hasOwn(one, key)))
    .transform((item): unknown[] => [item]),
])

/**
 * A cursor. An integer is sent back as its digits; one beyond 2^53 was rounded when it was parsed
 * and is refused. A text beyond this length is refused as well: it may have been cut on arrival.
 */
export const wireCursor = z.union([z.string().max(16_384), z.int().transform(String)])

export const wireSearchPage = z.looseObject({
  items: wireItems,
  next: wireCursor.nullish(),
})
export type WireSearchPage = z.infer<typeof wireSearchPage>

/**
 * Fields of answers that may be missing. A malformed one reads as null, so that its item survives;
 * feeds read the raw item.
 */
export const lenient = {
  text: z.string().nullish().catch(null),
  texts: z.array(z.string()).nullish().catch(null),
  number: z.number().nullish().catch(null),
  numbers: z.array(z.number()).nullish().catch(null),
  flag: z.boolean().nullish().catch(null),
  id: z.union([z.string(), z.number()]).nullish().catch(null),
  fields: z.record(z.string(), z.unknown()).nullish().catch(null),
}

export const wireTokenGrant = z.looseObject({ token: z.string().min(1) })

export const wireTokenTest = z.looseObject({
  tenant_id: z.number().nullish(),
  api_key_id: z.number().nullish(),
  organization_id: z.number().nullish(),
  user_id: z.number().nullish(),
  user_email: z.string().nullish(),
  scopes: z.array(z.string()).nullish(),
})

/**
 * The wire format, shared by the client and the sandbox: unknown fields, types and severities pass, since the
 * service may grow; what Tocsin reads is checked exactly. docs/api-notes.md says what the description leaves open.
 */
import { z } from 'zod'

/** What an item is known by: events of either shape have the first, credentials the last. */
const itemKeys = ['metadata', 'uid', 'header', 'activity', 'id']

/**
 * A list of items, each parsed alone, so that one bad item blocks none. null is no items and an item by
 * itself is one; whatever else stands in its place, or nothing at all, is an error of the service.
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
 * A whole number goes back as its digits; beyond 2^53 it was rounded when it was read. A longer text than this is
 * no cursor: where texts are cut as they arrive, it might be part of one.
 */
export const wireCursor = z.union([z.string().max(16_384), z.int().transform(String)])

/** One page of a search. */
export const wireSearchPage = z.looseObject({
  items: wireItems,
  next: wireCursor.nullish(),
})
export type WireSearchPage = z.infer<typeof wireSearchPage>

const text = z.string()
const nullableText = z.string().nullish()

export const wireTokenGrant = z.looseObject({ token: z.string().min(1) })
export type WireTokenGrant = z.infer<typeof wireTokenGrant>

export const wireTokenTest = z.looseObject({
  tenant_id: z.number().nullish(),
  api_key_id: z.number().nullish(),
  organization_id: z.number().nullish(),
  user_id: z.number().nullish(),
  user_email: nullableText,
  scopes: z.array(text).nullish(),
})
export type WireTokenTest = z.infer<typeof wireTokenTest>

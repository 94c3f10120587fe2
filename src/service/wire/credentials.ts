import { z } from 'zod'
import { credentialIncludes, orders } from './enumerations.ts'

const text = z.string()
/** An odd field keeps no record back: it reads as null. Feeds read the record as it came. */
const optionalText = text.nullish().catch(null)
const optionalTexts = z.array(text).nullish().catch(null)
const optionalId = z.union([text, z.number()]).nullish().catch(null)

export const wireCredentialSource = z.looseObject({
  id: optionalId,
  name: optionalText,
  breached_at: optionalText,
  leaked_at: optionalText,
  pii_tags: optionalTexts,
})

/**
 * One record of the v3 feed or of the v4 search, as commands show it; the two differ in what they leave
 * out. Today's servers give null for more than the description says (facts.md 3, credential search). An
 * id is a whole number below 2^53: above that two ids would read as one.
 */
export const wireCredential = z.looseObject({
  id: z.int().min(0),
  source_id: optionalId,
  imported_at: optionalText,
  identity_name: optionalText,
  hash: optionalText,
  hash_type: optionalText,
  domain: optionalText,
  auth_domains: optionalTexts,
  urls: optionalTexts,
  known_password_id: z.number().nullish().catch(null),
  /** Names the pair of identity and secret without telling it. */
  credential_hash: optionalText,
  /** Of the event that holds it, such as a stealer log. */
  event_uid: optionalText,
  source: wireCredentialSource.nullish().catch(null),
  remediated_at: optionalText,
  ignored_at: optionalText,
})
export type WireCredential = z.infer<typeof wireCredential>

const word = z.string().min(1)

/**
 * What a global credential search looks for: an address' domain, the site of the login, a secret, one
 * address, or what the part of a name before the @ holds (facts.md 1, row 12).
 */
export const wireCredentialQuery = z.discriminatedUnion('type', [
  z.strictObject({ type: z.enum(['domain', 'auth_domain']), fqdn: word }),
  z.strictObject({ type: z.literal('secret'), secret: word }),
  z.strictObject({ type: z.literal('email'), email: word }),
  z.strictObject({ type: z.literal('keyword'), keyword: word }),
])
export type WireCredentialQuery = z.input<typeof wireCredentialQuery>

/** The body of the v4 credential search. As with events, of a walk only `from` moves. */
export const credentialSearchBody = z.strictObject({
  query: wireCredentialQuery,
  /** 1 to 10,000 (service.md, Credential search); a large one may end in a 504. */
  size: z.int().min(1).max(10_000),
  order: z.enum(orders),
  from: z.string().optional(),
  include: z.array(z.enum(credentialIncludes)).optional(),
  /** Servers before 2026-05-28 ignore it for all kinds but `auth_domain` (facts.md 0). */
  filters: z
    .strictObject({
      imported_at: z.strictObject({ gte: word.optional(), lte: word.optional() }).optional(),
    })
    .optional(),
})
export type WireCredentialSearchBody = z.input<typeof credentialSearchBody>

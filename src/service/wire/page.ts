/**
 * The wire format, shared by the client and the sandbox: lenient where the service may grow (unknown
 * fields, types and severities pass), exact in what Tocsin reads. Shapes: service.md; gaps: facts.md.
 */
import { z } from 'zod'

/** One page of a search. Items stay unknown: each is parsed alone, so that one bad item blocks none. */
export const wireSearchPage = z.looseObject({
  items: z.array(z.unknown()),
  next: z.string().nullish(),
})
export type WireSearchPage = z.infer<typeof wireSearchPage>

import type { FastifyReply } from 'fastify'
import type { SandboxSettings } from '../options.ts'
import type { SearchQuota } from './search-quota.ts'

export interface ChargedPage {
  /** Which endpoint searched; the same query elsewhere is another search. */
  kind: 'credentials' | 'events' | 'legacy'
  /** Without filters, which change nothing about its price (facts.md 1, row 29). */
  query: unknown
  shown: readonly (string | number)[]
}

/** Takes a page's price from the month's quota, and says in headers what is left (facts.md 2.2). */
export function chargeSearch(
  reply: FastifyReply,
  { kind, query, shown }: ChargedPage,
  { settings, quota }: { settings: SandboxSettings; quota: SearchQuota },
): void {
  if (!settings.searchQuota) return
  const { prefix } = settings.searchQuota
  const paid = quota.pay(JSON.stringify([kind, query]), shown, settings.now())
  void reply.header(`${prefix}Global-Searches-Remaining`, String(paid.remaining))
  if (paid.isBatchReached) void reply.header(`${prefix}Global-Searches-Batch-Reached`, 'true')
}

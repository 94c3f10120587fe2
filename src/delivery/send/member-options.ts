/** How events are put into messages: for the daemon, and for every command that shows one. */
import { createGuidanceFinder } from '../../messages/guidance.ts'
import { createPageAddress } from '../../messages/page-links.ts'
import { createRouter } from '../../routing/router.ts'
import { listDestinations } from '../../sinks/destinations.ts'
import { createLinkFilter } from '../../upstream/links.ts'
import type { MemberOptions } from './delivery-member.ts'

export interface MessageParts {
  accounts: readonly (Parameters<typeof createLinkFilter>[0][number] & {
    name: string
    tenantId?: number | undefined
  })[]
  messages: Parameters<typeof createGuidanceFinder>[0]
  route: Parameters<typeof createRouter>[0]
  sinks: readonly Parameters<typeof listDestinations>[0][]
  http: { publicUrl?: string | undefined }
}

/** Without `openSecret`, leaked secrets stay masked. */
export function buildMemberOptions(
  { accounts, messages, route, sinks, http }: MessageParts,
  openSecret?: MemberOptions['openSecret'],
): MemberOptions {
  const router = createRouter(route)
  const tenants = new Map(accounts.map(({ name, tenantId }) => [name, tenantId]))
  const destinations = sinks.flatMap(listDestinations)
  const labels = new Map(destinations.map(({ id, label }) => [id, label]))
  return {
    openSecret,
    serviceLink: createLinkFilter(accounts),
    pageAddress: createPageAddress(http.publicUrl),
    findLabel: (destination) => labels.get(destination),
    namesAccounts: accounts.length > 1,
    findTenant: (account) => tenants.get(account),
    findGuidance: createGuidanceFinder(messages, (name) => router.node(name)),
  }
}

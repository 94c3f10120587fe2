/** How events are put into messages: for the daemon, and for every command that shows one. */
import type { Config } from '../config/config.ts'
import type { MemberOptions } from '../delivery/delivery-member.ts'
import { createGuidanceFinder } from '../messages/guidance.ts'
import { createRouter } from '../routing/router.ts'
import { createLinkFilter } from '../upstream/links.ts'
import type { LeakedSecrets } from './sinks.ts'

/** Without `secrets`, leaked secrets stay masked. */
export function buildMemberOptions(
  { accounts, messages, route }: Pick<Config, 'accounts' | 'messages' | 'route'>,
  secrets?: Pick<LeakedSecrets, 'open'>,
): MemberOptions {
  const router = createRouter(route)
  const tenants = new Map(accounts.map(({ name, tenantId }) => [name, tenantId]))
  return {
    openSecret: secrets?.open,
    serviceLink: createLinkFilter(accounts),
    namesAccounts: accounts.length > 1,
    findTenant: (account) => tenants.get(account),
    findGuidance: createGuidanceFinder(messages, (name) => router.node(name)),
  }
}

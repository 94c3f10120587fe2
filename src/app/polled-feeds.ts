import type { Config } from '../config/config.ts'
import type { PolledFeed } from '../feeds/polled-feed.ts'

/** The feeds of a configuration as they are polled: each with what its cursors are good for. */
export function polledFeeds({ feeds, accounts }: Config): PolledFeed[] {
  const byName = new Map(accounts.map((account) => [account.name, account]))
  return feeds.map((feed) => {
    const account = byName.get(feed.account)
    return { ...feed, scope: `${account?.baseUrl} ${account?.tenantId ?? ''}` }
  })
}

/** `feeds list`: how each feed is read, and what is wrong with it. */
import { feedColumns } from '../../operator/reports/feed-report.ts'
import type { Problem } from '../../operator/alerts/troubles.ts'
import type { FeedConfig } from '../../feeds/types/config.ts'
import type { Context } from '../context.ts'
import { type ListOptions, printList, readListed } from '../list.ts'

export async function listFeeds(
  context: Context,
  name: string | undefined,
  options: ListOptions,
): Promise<void> {
  const { feeds, problems } = await readListed(context, options)
  printList(context, options, name, {
    thing: 'feed',
    rows: feeds,
    nameOf: ({ feed }) => feed.name,
    columns: feedColumns,
    problems: [...problems, ...feeds.flatMap(({ feed }) => ofAccount(feed, problems))],
  })
}

/** What keeps the whole account from being read, as a problem of the feed. */
function ofAccount({ name, account }: FeedConfig, problems: readonly Problem[]): Problem[] {
  return problems
    .filter(({ check, subject, stops }) => check === 'account' && subject === account && stops)
    .map((one) => ({
      ...one,
      check: 'feed',
      subject: name,
      detail: `account ${account}: ${one.detail}`,
    }))
}

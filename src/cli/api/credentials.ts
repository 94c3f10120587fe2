/** `credentials search`: leaked credentials, with secrets masked unless revealed. */
import { Command } from 'commander'
import { systemClock } from '../../lib/clock.ts'
import { credentialOperations, type WireCredential } from '../../upstream/resources/credentials.ts'
import type { Operation } from '../../upstream/resources/operation.ts'
import type { Context } from '../context.ts'
import { addPeriodOptions, toRangeFilter, resolvePeriod, type PeriodOptions } from '../options.ts'
import { sanitize } from '../terminal.ts'
import { fetchRows } from './api.ts'
import { type Listing, rowListing, shortTime } from './listing.ts'
import { listCommand, type ListOptions } from './pages.ts'
import { addQueryOptions, credentialTerms, type QueryOptions, readQuery } from './queries.ts'

const row = credentialOperations.search as Operation

type CredentialsSearchOptions = ListOptions & PeriodOptions & QueryOptions

/** Without `urls`, which servers before 2026-07 refuse. */
const include = ['known_password_id', 'auth_domains'] as const

/** Large pages are slow (docs/api-notes.md, Page sizes). */
const pageSize = 100

export function credentialsCommand(context: Context): Command {
  const search = listCommand(context, {
    name: 'credentials search',
    description: 'search all leaked credentials (costs quota)',
    options: (command) => addPeriodOptions(addQueryOptions(command, credentialTerms), 'imported'),
    pageSize,
    reveal: true,
    async ask(options: CredentialsSearchOptions) {
      const period = resolvePeriod(options, systemClock.now()) // said before a secret is asked for
      const query = await readQuery(context, credentialTerms, options, nothingToSearch)
      return { query, period }
    },
    listing: () => credentialsListing,
    fetch(asking) {
      const imported_at = toRangeFilter(asking.asked.period)
      const filters = imported_at && { imported_at }
      return fetchRows(asking, row, { query: asking.asked.query, filters, order: 'desc', include })
    },
  })
  return new Command('credentials').addCommand(search)
}

const nothingToSearch =
  'a search is for one thing; give exactly one of --domain, --auth-domain, --email, --keyword and --secret'

const credentialsListing: Listing<WireCredential> = {
  ...rowListing(row),
  columns: [
    { title: 'IMPORTED (UTC)', text: ({ imported_at: at }) => shortTime(at) },
    { title: 'IDENTITY', text: ({ identity_name: name }) => name ?? '' },
    { title: 'SECRET', text: formatSecret },
    {
      title: 'SOURCE',
      text: ({ source, source_id }) => source?.name ?? String(source?.id ?? source_id ?? ''),
    },
  ],
  below: detailLines,
}

function formatSecret({ hash, hash_type }: WireCredential): string {
  if (!hash) return '–'
  return hash_type ? `${hash} (${hash_type})` : hash
}

function detailLines(record: WireCredential): string[] {
  const { auth_domains, urls, event_uid, remediated_at, ignored_at } = record
  const sites = urls?.length ? urls : (auth_domains ?? [])
  const notes = [
    ...(sites.length > 0 ? [`logs in at ${sites.join(', ')}`] : []),
    ...(event_uid ? [`in ${event_uid}`] : []),
    ...(remediated_at ? [`remediated ${shortTime(remediated_at)}`] : []),
    ...(ignored_at ? [`ignored ${shortTime(ignored_at)}`] : []),
  ]
  return notes.length === 0 ? [] : [sanitize(notes.join('; '))]
}

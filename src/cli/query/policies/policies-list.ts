/** `policies get` and `list`. */
import { systemClock } from '../../../runtime/clock.ts'
import type { WirePolicyAssignment } from '../../../service/wire/policies.ts'
import { CommandError } from '../../command-error.ts'
import type { Context } from '../../context.ts'
import { nameFailure } from '../name-failure.ts'
import { assignmentListing, policyListing } from './policy-listing.ts'
import { walkMark } from '../page-place.ts'
import { printOne } from '../print-one.ts'
import { printPages, type FetchedRows, type PagingOptions } from '../print-pages.ts'
import { withClient, type ServiceOptions } from '../service-command.ts'
import { placeAt, wordOfNext } from '../walk-place.ts'

export async function getPolicy(
  context: Context,
  uuid: string,
  options: ServiceOptions,
): Promise<void> {
  const policy = await withClient(context, options, ({ client, asked }) =>
    nameFailure(`policy ${uuid}`, client.getPolicy({ uuid, ...asked() })),
  )
  printOne(context, options, policyListing, policy)
}

export interface ListPoliciesOptions extends ServiceOptions, PagingOptions {
  identifier?: number
}

export async function listPolicies(context: Context, options: ListPoliciesOptions): Promise<void> {
  const { identifier } = options
  const nowMs = systemClock.now()
  await withClient(context, options, async (service) => {
    const { client, asked } = service
    const mark = walkMark(service, 'policies list', { identifier })
    if (identifier !== undefined) {
      return printPages(context, options, {
        listing: assignmentListing,
        mark,
        fetch: async (): Promise<FetchedRows<WirePolicyAssignment>> => ({
          rows: await nameFailure(
            `identifier ${identifier}`,
            client.policiesOf({ identifier, ...asked() }),
          ),
          next: null,
        }),
      })
    }
    await printPages(context, options, {
      listing: policyListing,
      mark,
      async fetch(word) {
        const place = placeAt(word, options, { usual: pageSize, nowMs })
        const { cursor: from, size } = place
        const page = await client.listPolicies({ from, size, ...asked() })
        if (page === undefined) throw new CommandError('refused', noList)
        return { rows: page.items, next: wordOfNext(place, page.next) }
      },
    })
  })
}

/** The most that the list takes (facts.md 2.3, Sizes). */
const pageSize = 25

const noList = 'this server lists no policies; name an identifier with --identifier'

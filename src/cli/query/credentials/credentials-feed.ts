import { Command, Option } from 'commander'
import { systemClock } from '../../../runtime/clock.ts'
import { orders } from '../../../service/wire/enumerations.ts'
import { wireCredential } from '../../../service/wire/credentials.ts'
import { CommandError } from '../../command-error.ts'
import type { Context } from '../../context.ts'
import { credentialRow, credentialsListing } from './credentials-listing.ts'
import { askUncertain, nameFailure } from '../name-failure.ts'
import { wholeId } from '../id-values.ts'
import { walkMark } from '../page-place.ts'
import { addPagingOptions, printPages, type PagingOptions } from '../print-pages.ts'
import { readRows } from '../read-rows.ts'
import { addRevealOption, type RevealOption } from '../reveal.ts'
import { addServiceOptions, withClient, type ServiceOptions } from '../service-command.ts'
import { addSizeOption, placeAt, wordOfNext, type SizeOption } from '../walk-place.ts'

interface CredentialsFeedOptions extends ServiceOptions, PagingOptions, SizeOption, RevealOption {
  tenant?: true
  order?: 'asc' | 'desc'
}

const usualSize = 20
/** No maximum is published (service.md, Limits); this one only keeps typing errors out. */
const mostOfAPage = 10_000

export function credentialsFeedCommand(context: Context): Command {
  const command = new Command('feed')
    .description('the leaked credentials of an identifier, or of all identifiers of the tenant')
    .argument('[identifier]', 'its id', wholeId)
    .option('--tenant', 'of all identifiers of the tenant')
    .addOption(
      new Option('--order <order>', 'with --tenant: by import (default: desc)').choices(orders),
    )
  addSizeOption(command, { usual: usualSize, most: mostOfAPage, mostInWords: '1 or more' })
  addPagingOptions(addRevealOption(command))
  return addServiceOptions(command).action(
    (identifier: number | undefined, options: CredentialsFeedOptions) =>
      readFeed(context, identifier, options),
  )
}

async function readFeed(
  context: Context,
  identifier: number | undefined,
  options: CredentialsFeedOptions,
): Promise<void> {
  refuseOdd(identifier, options)
  const nowMs = systemClock.now()
  const { order = 'desc' } = options
  await withClient(context, options, (service) =>
    printPages(context, options, {
      listing: credentialsListing(options),
      mark: walkMark(service, 'credentials feed', identifier ? { identifier } : { tenant: order }),
      async fetch(word) {
        const place = placeAt(word, options, { usual: usualSize, nowMs })
        const { cursor: from, size } = place
        const { client, asked } = service
        const { page } = await (identifier === undefined
          ? askUncertain(
              client,
              tenantFeed,
              client.tenantCredentials({ from, size, order, ...asked() }),
            )
          : nameFailure(
              `identifier ${identifier}`,
              client.credentialFeed({ identifier, from, size, ...asked() }),
            ))
        const records = readRows(context, wireCredential, page.items)
        return {
          rows: records.map((record) => credentialRow(record, { reveal: options.reveal })),
          next: wordOfNext(place, page.next),
        }
      },
    }),
  )
}

const tenantFeed = {
  capability: 'tenant_credentials',
  operation: "the feed of the tenant's credentials",
  permission: 'to read its credentials',
  instead: 'read the feed of each identifier',
}

function refuseOdd(
  identifier: number | undefined,
  { tenant, order }: CredentialsFeedOptions,
): void {
  if (identifier === undefined && !tenant) {
    throw new CommandError('mistake', 'name an identifier by its id, or all by --tenant')
  }
  if (identifier !== undefined && tenant) {
    throw new CommandError('mistake', 'an identifier and --tenant are different feeds; choose one')
  }
  if (identifier !== undefined && order) {
    throw new CommandError('mistake', '--order goes with --tenant only; leave it out')
  }
}

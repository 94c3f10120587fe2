import { Command } from 'commander'
import { systemClock } from '../../../runtime/clock.ts'
import { wireCredential } from '../../../service/wire/credentials.ts'
import type { Context } from '../../context.ts'
import { credentialRow, credentialsListing } from './credentials-listing.ts'
import { nameFailure } from '../name-failure.ts'
import { wholeId } from '../id-values.ts'
import { walkMark } from '../page-place.ts'
import { addPagingOptions, printPages, type PagingOptions } from '../print-pages.ts'
import { readRows } from '../read-rows.ts'
import { addRevealOption, type RevealOption } from '../reveal.ts'
import { addServiceOptions, withClient, type ServiceOptions } from '../service-command.ts'
import { addSizeOption, placeAt, wordOfNext, type SizeOption } from '../walk-place.ts'

interface CredentialsFeedOptions extends ServiceOptions, PagingOptions, SizeOption, RevealOption {}

const usualSize = 20
/** No maximum is published (service.md, Limits); this one only keeps typing errors out. */
const mostOfAPage = 10_000

export function credentialsFeedCommand(context: Context): Command {
  const command = new Command('feed')
    .description('the leaked credentials of an identifier, in the order that the service has them')
    .argument('<identifier>', 'its id', wholeId)
  addSizeOption(command, { usual: usualSize, most: mostOfAPage, mostInWords: '1 or more' })
  addPagingOptions(addRevealOption(command))
  return addServiceOptions(command).action((identifier: number, options: CredentialsFeedOptions) =>
    readFeed(context, identifier, options),
  )
}

async function readFeed(
  context: Context,
  identifier: number,
  options: CredentialsFeedOptions,
): Promise<void> {
  const nowMs = systemClock.now()
  await withClient(context, options, (service) =>
    printPages(context, options, {
      listing: credentialsListing(options),
      mark: walkMark(service, 'credentials feed', { identifier }),
      async fetch(word) {
        const place = placeAt(word, options, { usual: usualSize, nowMs })
        const { cursor: from, size } = place
        const { client, asked } = service
        const { page } = await nameFailure(
          `identifier ${identifier}`,
          client.credentialFeed({ identifier, from, size, ...asked() }),
        )
        const records = readRows(context, wireCredential, page.items)
        return {
          rows: records.map((record) => credentialRow(record, { reveal: options.reveal })),
          next: wordOfNext(place, page.next),
        }
      },
    }),
  )
}

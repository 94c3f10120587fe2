import { Command, Option } from 'commander'
import { systemClock } from '../../../runtime/clock.ts'
import { expandFields, type ExpandField } from '../../../service/wire/enumerations.ts'
import { wireExpandedCookie, wireExpandedCredential } from '../../../service/wire/events.ts'
import type { Context } from '../../context.ts'
import { harmless } from '../../words.ts'
import { expandListing, type ExpandedRow as Row } from './events-expand-listing.ts'
import { uidValue } from './events-get.ts'
import { nameFailure } from '../name-failure.ts'
import { walkMark } from '../page-place.ts'
import { addPagingOptions, printPages, type PagingOptions } from '../print-pages.ts'
import { readRows } from '../read-rows.ts'
import { addRevealOption, masked, type RevealOption } from '../reveal.ts'
import { addServiceOptions, withClient, type ServiceOptions } from '../service-command.ts'
import { addSizeOption, placeAt, wordOfNext, type SizeOption } from '../walk-place.ts'

interface EventsExpandOptions extends ServiceOptions, PagingOptions, SizeOption, RevealOption {
  field: ExpandField
}

/** At most 20 (service.md, Limits). */
const pageSize = 20

export function eventsExpandCommand(context: Context): Command {
  const command = new Command('expand')
    .description('the credentials or cookies within an event; only stealer logs have any')
    .argument('<uid>', 'of the event; as it stands in a message will do', uidValue)
    .addOption(
      new Option('--field <name>', 'what of it').choices(expandFields).makeOptionMandatory(),
    )
  addSizeOption(command, { usual: pageSize, most: pageSize })
  addPagingOptions(addRevealOption(command))
  return addServiceOptions(command).action((uid: string, options: EventsExpandOptions) =>
    expandEvent(context, uid, options),
  )
}

async function expandEvent(
  context: Context,
  uid: string,
  options: EventsExpandOptions,
): Promise<void> {
  const { field, reveal } = options
  const shape = field === 'cookies' ? wireExpandedCookie : wireExpandedCredential
  const nowMs = systemClock.now()
  await withClient(context, options, (service) =>
    printPages<Row>(context, options, {
      listing: expandListing(field, reveal === true),
      mark: walkMark(service, 'events expand', { uid, field }),
      async fetch(word) {
        const place = placeAt(word, options, { usual: pageSize, nowMs })
        const { size, cursor } = place
        const expansion = { uid, field, size, ...(cursor !== null && { from: cursor }) }
        const { client, asked } = service
        const answer = await nameFailure(
          harmless(uid),
          client.expandEvent({ expansion, ...asked() }),
        )
        const rows: Row[] = readRows<Row>(context, shape, answer.items)
        return {
          rows: reveal ? rows : rows.map((row) => maskedRow(field, row)),
          next: wordOfNext(place, answer.next),
        }
      },
    }),
  )
}

/** The name of the field says how its members are masked: of a cookie every value that is not about it. */
function maskedRow(field: ExpandField, row: Row): Row {
  const { password } = row
  const secrets = typeof password === 'string' ? [password] : []
  return masked({ [field]: row }, secrets)[field] ?? {}
}

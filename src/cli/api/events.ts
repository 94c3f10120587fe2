/** The `events` commands, and `events get`: one event in full. */

import { Command } from 'commander'
import { parseItem } from '../../feeds/types/events.ts'
import { withholdIn } from '../../masking/masking.ts'
import { typeLabel } from '../../messages/message.ts'
import { sanitizeLine, refang } from '../../messages/sanitize.ts'
import { severityLabel } from '../../messages/summary.ts'
import { createLinkFilter } from '../../upstream/links.ts'
import type { EventAnswer } from '../../upstream/documents.ts'
import type { WireFullEvent } from '../../upstream/resources/events.ts'
import { type Context, print } from '../context.ts'
import { linkLines } from '../ledger/item-text.ts'
import { parseText } from '../options.ts'
import { CommandError, sanitize, type Terminal, formatUtcTime } from '../terminal.ts'
import { addServiceOptions, nameFailure, type ServiceOptions, withClient } from './api-command.ts'
import { eventsSearchCommand, eventTitle } from './events-search.ts'
import { addRevealOption, fieldLines, type RevealOption, severityStyle } from './listing.ts'

export function eventsCommand(context: Context): Command {
  return new Command('events')
    .addCommand(eventsSearchCommand(context))
    .addCommand(eventsGetCommand(context))
}

interface EventsGetOptions extends ServiceOptions, RevealOption {
  output: 'text' | 'json'
}

function eventsGetCommand(context: Context): Command {
  const command = new Command('get')
    .description('one event in full, from the service')
    .argument('<uid>', 'of the event; as it stands in a message will do', parseUid)
  return addServiceOptions(addRevealOption(command), ['text', 'json']).action(
    (uid: string, options: EventsGetOptions) => getEvent(context, uid, options),
  )
}

function parseUid(text: string): string {
  return refang(parseText(text))
}

async function getEvent(context: Context, uid: string, options: EventsGetOptions): Promise<void> {
  const { answer, serviceLink } = await withClient(
    context,
    options,
    async ({ config, account, client, callOptions }) => ({
      answer: await nameFailure(sanitize(uid), client.getEvent({ uid, ...callOptions() })),
      serviceLink: (url: string | null) => createLinkFilter(config.accounts)(account, url),
    }),
  )
  if (answer.kind === 'none') throw missingEventError(uid, answer.why)
  const { event } = answer
  const masked = {
    ...event,
    metadata: { ...withholdIn(event.metadata), uid },
    data: withholdIn(answer.data, uid),
  }
  print(context, options, {
    json: options.reveal ? event : masked,
    lines: () => eventCard(context.terminal, masked, serviceLink),
  })
}

type MissingReason = Extract<EventAnswer, { kind: 'none' }>['why']

const missingReasons: Record<MissingReason, string> = {
  unsupported: 'there is no full event of this type; the search item is all there is',
  not_found: 'the service knows no event of this uid; copy the uid whole',
  empty: 'the full event is empty; the search item is all there is',
  mismatch: 'the service answers with another event; the search item is all there is',
}

function missingEventError(uid: string, why: MissingReason): CommandError {
  return new CommandError('refused', `${sanitize(uid)}: ${missingReasons[why]}`)
}

interface EventCard extends WireFullEvent {
  metadata: { uid: string }
  data: Readonly<Record<string, unknown>>
}

/**
 * Formats an event for people: type, time, place, and a line for each field that has a value.
 * `serviceLink` returns null for a URL that does not lead to the API's own site.
 */
function eventCard(
  terminal: Terminal,
  { event_type: type, metadata, data }: EventCard,
  serviceLink: (url: string | null) => string | null,
): string[] {
  const parsed = parseItem({ metadata: { ...metadata, type } })
  const uid = sanitize(metadata.uid, 600)
  if (!parsed.ok) return [terminal.paint('bold', uid), '', ...fieldLines(data)]
  const { event } = parsed
  const { severity, createdAtMs, matchedAtMs, url } = event
  const title = eventTitle(event, data)
  const name = title === null ? typeLabel(event.type) : `${typeLabel(event.type)}: ${title}`
  const shownSeverity = terminal.paint(severityStyle(severity), severityLabel(severity))
  const times = [
    ...(createdAtMs === null ? [] : [`created ${formatUtcTime(createdAtMs)}`]),
    ...(matchedAtMs === null ? [] : [`matched ${formatUtcTime(matchedAtMs)}`]),
  ]
  return [
    `${shownSeverity}  ${terminal.paint('bold', sanitize(name))}`,
    ...(times.length === 0 ? [] : [times.join(', ')]),
    uid,
    ...linkLines({ link: serviceLink(url), unverifiedLink: url && sanitizeLine(url, 600) }),
    '',
    ...fieldLines(data),
  ]
}

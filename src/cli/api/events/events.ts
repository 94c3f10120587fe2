/** `events get` and `events expand`: one event, and the credentials or cookies within it. */

import { Command, Option } from 'commander'
import { parseItem } from '../../../feed-types/events.ts'
import { maskDetail } from '../../../masking/masking.ts'
import { typeLabel } from '../../../messages/message.ts'
import { cutWithCount, sanitizeLine, refang } from '../../../messages/sanitize.ts'
import { severityLabel } from '../../../messages/summary.ts'
import { createLinkFilter } from '../../../upstream/links.ts'
import { type ExpandField, expandFields } from '../../../upstream/resources/enumerations.ts'
import {
  type EventAnswer,
  wireExpandedCookie,
  wireExpandedCredential,
  type WireFullEvent,
} from '../../../upstream/resources/events.ts'
import { type Context, print } from '../../context.ts'
import { linkLines } from '../../ledger/item-text.ts'
import { parseText } from '../../options.ts'
import {
  CommandError,
  sanitize,
  formatTable,
  type Terminal,
  formatUtcTime,
} from '../../terminal.ts'
import { addServiceOptions, nameFailure, type ServiceOptions, withClient } from '../api-command.ts'
import { eventsLegacySearchCommand } from './events-legacy-search.ts'
import { eventsSearchCommand, eventTitle } from './events-search.ts'
import {
  addRevealOption,
  type Column,
  type Listing,
  maskAllSecrets,
  parseRows,
  formatRevealed,
  type RevealOption,
  severityStyle,
  shortTime,
} from '../listing.ts'
import { type FetchedRows, listCommand, type ListOptions, type ListRequest } from '../pages.ts'
import { eventTriageCommands } from '../triage.ts'

export function eventsCommand(context: Context): Command {
  const events = new Command('events')
    .addCommand(eventsSearchCommand(context))
    .addCommand(eventsGetCommand(context))
    .addCommand(eventsExpandCommand(context))
    .addCommand(eventsLegacySearchCommand(context))
  for (const command of eventTriageCommands(context)) events.addCommand(command)
  return events
}

interface EventsGetOptions extends ServiceOptions, RevealOption {
  output: 'text' | 'json'
}

export function eventsGetCommand(context: Context): Command {
  const command = new Command('get')
    .description('one event in full, from the service')
    .argument('<uid>', 'of the event; as it stands in a message will do', parseUid)
  return addServiceOptions(addRevealOption(command), ['text', 'json']).action(
    (uid: string, options: EventsGetOptions) => getEvent(context, uid, options),
  )
}

export function parseUid(text: string): string {
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
  const data = options.reveal ? answer.data : maskDetail(answer.data, uid)
  const metadata = { ...(options.reveal ? event.metadata : maskAllSecrets(event.metadata)), uid }
  const shown = { ...event, metadata, data }
  print(context, options, {
    json: shown,
    lines: () =>
      eventCard(context.terminal, {
        ...shown,
        maskedData: maskDetail(answer.data, uid),
        serviceLink,
      }),
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

const maxValueLength = 500
const maxPathLength = 60
const maxFields = 200

interface EventCard extends WireFullEvent {
  metadata: { uid: string }
  data: Readonly<Record<string, unknown>>
  /**
   * Returns a URL that may be shown as a link; null when it does not lead to the API's own site.
   */
  serviceLink: (url: string | null) => string | null
  /** The title is built from this, so it shows no secret even when fields are revealed. */
  maskedData: Readonly<Record<string, unknown>>
}

/** Formats an event for people: type, time, place, and a line for each field that has a value. */
export function eventCard(
  terminal: Terminal,
  { event_type, metadata, data, maskedData, serviceLink }: EventCard,
): string[] {
  const masked = new Map(flattenFields(maskedData))
  const fields = flattenFields(data)
  const more = fields.length - maxFields
  return [
    ...cardHead(
      terminal,
      { metadata: { ...metadata, type: event_type } },
      { maskedData, serviceLink },
    ),
    '',
    ...formatTable(
      fields
        .slice(0, maxFields)
        .map(([path, value]) => [
          sanitize(path, maxPathLength),
          formatValue(value, { isRevealed: masked.get(path) !== value }),
        ]),
    ),
    ...(more > 0 ? [`… and ${more} more fields; --output json has them all`] : []),
  ]
}

function cardHead(
  terminal: Terminal,
  item: { metadata: { uid: string; type: string | null | undefined } },
  { maskedData, serviceLink }: Pick<EventCard, 'maskedData' | 'serviceLink'>,
): string[] {
  const parsed = parseItem(item)
  const uid = sanitize(item.metadata.uid, 600)
  if (!parsed.ok) return [terminal.paint('bold', uid)]
  const { event } = parsed
  const { severity, createdAtMs, matchedAtMs, url } = event
  const title = eventTitle(event, maskedData)
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
  ]
}

/** Flattens to dotted paths; a list of plain values is one field. */
function flattenFields(value: unknown, path = ''): [string, string][] {
  if (value === null || value === undefined || value === '') return []
  if (typeof value !== 'object') return [[path, `${value as string | number | boolean}`]]
  if (Array.isArray(value) && value.every((entry) => typeof entry !== 'object' || entry === null)) {
    return value.length === 0 ? [] : [[path, value.map(String).join(', ')]]
  }
  return Object.entries(value).flatMap(([key, inner]) =>
    flattenFields(inner, path === '' ? key : `${path}.${key}`),
  )
}

/** A value that masking would change may be a secret, so it is not cut when revealed. */
function formatValue(value: string, { isRevealed }: { isRevealed: boolean }): string {
  return isRevealed
    ? formatRevealed(value)
    : cutWithCount(sanitize(value, Infinity), maxValueLength)
}

/** The largest page that the API returns (docs/api-notes.md, Page sizes). */
const pageSize = 20

interface ExpandOptions extends ListOptions {
  field: ExpandField
}

export function eventsExpandCommand(context: Context): Command {
  return listCommand(context, {
    name: 'events expand',
    description: 'the credentials or cookies within an event; only stealer logs have any',
    options: (command) =>
      command
        .argument('<uid>', 'of the event; as it stands in a message will do', parseUid)
        .addOption(
          new Option('--field <name>', 'what of it').choices(expandFields).makeOptionMandatory(),
        ),
    pageSize: { usual: pageSize, most: pageSize },
    reveal: true,
    ask: ({ field }: ExpandOptions, uid) => ({ uid: String(uid), field }),
    listing: ({ reveal }, { field }) => expandListing(field, reveal === true),
    fetch: expandEvent,
  })
}

async function expandEvent({
  context,
  client,
  callOptions,
  options: { reveal },
  asked: { uid, field },
  position: { size, cursor },
}: ListRequest<ExpandOptions, { uid: string; field: ExpandField }>): Promise<
  FetchedRows<ExpandedRow>
> {
  const shape = field === 'cookies' ? wireExpandedCookie : wireExpandedCredential
  const expansion = { uid, field, size, ...(cursor !== null && { from: cursor }) }
  const answer = await nameFailure(
    sanitize(uid),
    client.expandEvent({ expansion, ...callOptions() }),
  )
  const rows: ExpandedRow[] = parseRows<ExpandedRow>(context, shape, answer.items)
  return {
    rows: reveal ? rows : rows.map((row) => maskRow(field, row)),
    next: answer.next ?? null,
  }
}

/**
 * Masks a row under the name of its field, which decides what is masked: of a cookie, every value
 * that does not describe it.
 */
function maskRow(field: ExpandField, row: ExpandedRow): ExpandedRow {
  const { password } = row
  const secrets = typeof password === 'string' ? [password] : []
  return maskAllSecrets({ [field]: row }, secrets)[field] ?? {}
}

export type ExpandedRow = Record<string, unknown>

/** Lists what a stealer log holds; a revealed secret is printed on a line of its own, in full. */
export function expandListing(field: ExpandField, reveal: boolean): Listing<ExpandedRow> {
  const { columns, secret, csv } = listings[field]
  return {
    columns: reveal ? columns.filter(({ key }) => key !== secret) : columns,
    below: (row) => {
      const clear = fieldText(row, secret)
      return reveal && clear !== '' ? [`${secret}: ${formatRevealed(clear)}`] : []
    },
    json: (row) => row,
    csv,
  }
}

interface KeyColumn extends Column<ExpandedRow> {
  key: string
}

const listings: Readonly<
  Record<ExpandField, { columns: KeyColumn[]; secret: string; csv: string[] }>
> = {
  credentials: {
    columns: [
      textColumn('username', 'USER NAME', 32),
      textColumn('password', 'PASSWORD', 20),
      textColumn('application', 'APPLICATION', 20),
      textColumn('url', 'URL', 60),
    ],
    secret: 'password',
    csv: ['url', 'username', 'password', 'application'],
  },
  cookies: {
    columns: [
      textColumn('host_key', 'HOST', 32),
      textColumn('path', 'PATH', 12),
      textColumn('name', 'NAME', 24),
      {
        ...textColumn('expires_utc', 'EXPIRES (UTC)', 16),
        text: (row) => shortTime(fieldText(row, 'expires_utc')),
      },
      textColumn('value', 'VALUE', 60),
    ],
    secret: 'value',
    csv: ['host_key', 'path', 'expires_utc', 'name', 'value'],
  },
}

function textColumn(key: string, title: string, width: number): KeyColumn {
  return { key, title, width, text: (row) => fieldText(row, key) }
}

function fieldText(row: ExpandedRow, key: string): string {
  const value = row[key]
  return typeof value === 'string' ? value : ''
}

/** The `render` command: what a sink would send for one event, without sending it. */
import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { buildMemberOptions } from '../../delivery/send/member-options.ts'
import { type GivenMember, toDeliveryMember } from '../../delivery/send/delivery-member.ts'
import { isCanary, severityRank } from '../../event.ts'
import { createRouter, planItems } from '../../routing/router.ts'
import type { SinkConfig } from '../../sinks/sink-types.ts'
import type { Delivery, Preview, Sink } from '../../sinks/sink.ts'
import { itemId } from '../../store/account-ledger.ts'
import { type Item, type LedgerRecord, otherDestinations } from '../../store/records.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import {
  type GivenEvent,
  type GivenEvents,
  givenEventSays,
  readGivenEvents,
} from '../open/given-event.ts'
import { isForMachines } from '../../operator/message-text.ts'
import { useSink } from '../../operator/probes/sink-probes.ts'
import { CommandError, findNamed, jsonText } from '../terminal.ts'

interface RenderOptions extends CommonOptions {
  sink: string
  account?: string
  feed?: string
}

export function renderCommand(context: Context): Command {
  return addCommonOptions(new Command('render'))
    .argument('<event>', givenEventSays)
    .requiredOption('--sink <name>', 'the sink whose message it is')
    .option('--account <name>', 'only what this account knows, or a feed of it')
    .option('--feed <name>', 'as if this feed had brought it')
    .action((given: string, options: RenderOptions) => render(context, given, options))
}

interface Rendered {
  sink: Sink
  delivery: Delivery
  preview: Preview
  notes: string[]
}

async function render(context: Context, given: string, options: RenderOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const sinkConfig = findNamed(config.sinks, options.sink, 'sink')
  const event = chooseEvent(await readGivenEvents(context, config, given, options), options.sink)
  await useSink(sinkConfig, async (sink, failures) => {
    const delivery = buildDelivery(config, sink, event)
    const preview = sink.preview?.(delivery)
    if (preview === undefined) throw new Error(`${sink.name} has no preview`)
    const notes = [...listNotes(sinkConfig, event, { sink, delivery, preview }), ...failures]
    show(context, options, { sink, delivery, preview, notes })
  })
}

/** The sighting that made the item for this sink, else the last one. Throws CommandError. */
function chooseEvent({ events }: GivenEvents, sink: string): GivenEvent {
  const accounts = [...new Set(events.map(({ account }) => account))]
  if (accounts.length > 1) {
    throw new CommandError(
      'mistake',
      `${accounts.length} accounts know it: ${accounts.join(', ')}; name one with --account`,
    )
  }
  const [first] = events
  if (first === undefined) throw new Error('no event was read')
  const { items = [], sightings = [] } = first.stored?.record ?? {}
  const item = items.find((one) => one.sink === sink)
  const feed = item && sightings[item.sighting]?.feed
  return events.find((one) => one.feed === feed) ?? events.at(-1) ?? first
}

/** As the daemon would make it, with the same ids; for the first recipient of an e-mail sink. */
function buildDelivery(config: Config, sink: Sink, given: GivenEvent): Delivery {
  const [destination] = sink.destinations
  if (destination === undefined) throw new Error(`${sink.name} has no destination`)
  const { account, feed, labels, event, detail, fetchedAtMs, stored } = given
  const item = stored?.record.items.find((one) => one.destination === destination.id)
  const severity = item?.severity ?? event.severity
  const id = itemId(account, event.uid, severity, destination.id)
  const about = {
    id,
    uid: event.uid,
    severity,
    feed,
    labels,
    routes: item?.routes ?? findRoutes(config, sink, destination.id, given),
    raisedFrom: item?.raisedFrom,
    payload: stored?.payload ?? { event, fetchedAtMs, ...(detail !== undefined && { detail }) },
    ...(stored && relatedOf(stored.record, destination.id, item)),
  }
  const member = toDeliveryMember(sink, account, about, buildMemberOptions(config))
  if (member === undefined) throw new Error(`${event.uid} has no content`)
  return {
    id,
    destination,
    members: [member],
    attempt: 1,
    mayBeRepeat: false,
    timeZone: sink.timeZone,
    ...(isCanary(member) && { isTest: true }),
  }
}

/** What the ledger knows of the event beside its content. */
function relatedOf(
  { recordId, items, seenBefore }: LedgerRecord,
  destination: string,
  item: Item | undefined,
): Partial<GivenMember> {
  const place = { destination, createdAtMs: item?.createdAtMs ?? Infinity }
  return { recordId, destination, otherDestinations: otherDestinations(items, place), seenBefore }
}

/** The routes that would send it there now; none: no route would. */
function findRoutes(config: Config, sink: Sink, destination: string, given: GivenEvent): string[] {
  const { decisions } = createRouter(config.route).explain(given)
  const items = planItems(decisions, (name) => (name === sink.name ? [destination] : []))
  return items.find((one) => one.destination === destination)?.routes ?? []
}

function listNotes(
  { digest, name }: SinkConfig,
  { stored }: GivenEvent,
  { sink, delivery, preview }: Omit<Rendered, 'notes'>,
): string[] {
  const [member] = delivery.members
  const rank = severityRank(member?.event.severity ?? '')
  const waits = digest && (digest.immediate === null || rank < severityRank(digest.immediate))
  const isRevealed = sink.reveals === true && stored?.payload.sealedSecret !== undefined
  return [
    'nothing was sent',
    ...(member?.routes.length === 0 ? [`no route sends this event to ${name}`] : []),
    ...(waits ? ['it would wait for the digest; this is a message about it alone'] : []),
    ...(preview.added === undefined ? [] : [`added when it is sent: ${preview.added}`]),
    ...(isRevealed ? [`${name} reveals: what is masked here is sent in clear`] : []),
  ]
}

function show(context: Context, options: RenderOptions, rendered: Rendered): void {
  const { sink, delivery, preview, notes } = rendered
  if (options.output === 'text') context.terminal.printError(`(${notes.join('; ')})`)
  print(context, options, {
    json: {
      sink: sink.name,
      type: sink.type,
      destination: delivery.destination.label,
      delivery: delivery.id,
      subject: preview.subject ?? null,
      text: preview.text,
      html: preview.html ?? null,
      headers: preview.headers ?? null,
      body: preview.body ?? null,
      notes,
    },
    lines: () => textLines(sink, preview),
  })
}

function textLines(sink: Sink, preview: Preview): string[] {
  const { subject, headers = {}, body } = preview
  const isForMachine = isForMachines(sink)
  return [
    ...(subject === undefined ? [] : [`Subject: ${subject}`, '']),
    ...(isForMachine ? Object.entries(headers).map(([name, value]) => `${name}: ${value}`) : []),
    ...(isForMachine ? ['', jsonText(body, 2)] : [preview.text.trimEnd()]),
  ]
}

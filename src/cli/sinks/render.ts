/** The `render` command: what a sink would send for one event, without sending it. */
import { existsSync } from 'node:fs'
import { Command } from 'commander'
import type { Config } from '../../config/config.ts'
import { buildMemberOptions } from '../../delivery/member-options.ts'
import { buildSecrets } from '../../delivery/leaked-secrets.ts'
import { toDeliveryMember } from '../../delivery/delivery-member.ts'
import { isCanary, severityRank } from '../../event.ts'
import { systemClock } from '../../lib/clock.ts'
import { refang } from '../../messages/sanitize.ts'
import { createRouter, planItems } from '../../routing/router.ts'
import { drawPage } from '../../sandbox/drawing/html.ts'
import { drawSlack, slackText } from '../../sandbox/drawing/slack.ts'
import { drawTeams } from '../../sandbox/drawing/teams.ts'
import { type SinkConfig, sinkTypeOf } from '../../sinks/sink-types.ts'
import type { Delivery, Preview, Sink } from '../../sinks/sink.ts'
import { formatTemplateFailure } from '../../sinks/templates.ts'
import { itemId } from '../../store/account-ledger.ts'
import { addRevealOption } from '../api/listing.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
  silentLogger,
  writePrivateOutput,
} from '../context.ts'
import {
  type GivenEvent,
  type GivenEvents,
  readEventFile,
  readStoredEvents,
} from '../open/given-event.ts'
import { CommandError, findNamed, jsonText, sanitize } from '../terminal.ts'

interface RenderOptions extends CommonOptions {
  sink: string
  html?: true
  out?: string
  account?: string
  feed?: string
  reveal?: true
}

export function renderCommand(context: Context): Command {
  const command = addCommonOptions(new Command('render'))
    .argument(
      '<event>',
      'uid of an event that was taken in; or a file with one as the search gives it, or in full, in JSON; - for standard input',
    )
    .requiredOption('--sink <name>', 'the sink whose message it is')
    .option('--html', 'as its readers see it: the HTML of a mail, a drawing of a chat message')
    .option('--out <file>', 'write it into this file')
    .option('--account <name>', 'only what this account knows, or a feed of it')
    .option('--feed <name>', 'as if this feed had brought it')
  return addRevealOption(command, 'show a leaked secret in clear where the sink reveals it').action(
    (given: string, options: RenderOptions) => render(context, given, options),
  )
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
  if (options.feed !== undefined) findNamed(config.feeds, options.feed, 'feed')
  if (options.account !== undefined && isFile(given)) {
    findNamed(config.accounts, options.account, 'account')
  }
  const event = chooseEvent(
    isFile(given)
      ? await readEventFile(context, config, { file: given, ...options })
      : await readStoredEvents(config, refang(given.trim()), options),
    options.sink,
  )
  const failures: string[] = []
  const sink = await sinkTypeOf(sinkConfig).create(sinkConfig, {
    logger: silentLogger,
    clock: systemClock,
    onTemplateFailure: (failure) => failures.push(formatTemplateFailure(failure)),
  })
  try {
    const reveals = options.reveal === true
    const delivery = buildDelivery(config, { sink, reveals }, event)
    const preview = sink.preview?.(delivery)
    if (preview === undefined) throw new Error(`${sink.name} has no preview`)
    const notes = [
      ...listNotes(sinkConfig, { sink, delivery, preview }),
      ...secretNotes(sink, event, reveals),
      ...failures,
    ]
    await show(context, options, { sink, delivery, preview, notes })
  } finally {
    await sink.close()
  }
}

/** A uid has slashes as a path has; what there is on disk, or ends as a file does, is a file. */
function isFile(given: string): boolean {
  return given === '-' || given.endsWith('.json') || existsSync(given)
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
function buildDelivery(
  config: Config,
  { sink, reveals }: { sink: Sink; reveals: boolean },
  given: GivenEvent,
): Delivery {
  const [destination] = sink.destinations
  if (destination === undefined) throw new Error(`${sink.name} has no destination`)
  const { account, feed, labels, event, detail, fetchedAtMs, stored } = given
  const item = stored?.record.items.find((one) => one.destination === destination.id)
  const severity = item?.severity ?? event.severity
  const id = itemId(account, event.uid, severity, destination.id)
  const secrets = reveals ? buildSecrets({ config, logger: silentLogger }) : undefined
  const about = {
    id,
    uid: event.uid,
    severity,
    feed,
    labels,
    routes: item?.routes ?? findRoutes(config, sink, destination.id, given),
    raisedFrom: item?.raisedFrom,
    payload: stored?.payload ?? { event, fetchedAtMs, ...(detail !== undefined && { detail }) },
  }
  const member = toDeliveryMember(sink, account, about, buildMemberOptions(config, secrets?.open))
  if (member === undefined) throw new Error(`${event.uid} has no content`)
  const inFile = reveals && sink.reveals === true ? given.secret : undefined
  return {
    id,
    destination,
    members: [{ ...member, ...(inFile !== undefined && { secret: inFile }) }],
    attempt: 1,
    mayBeRepeat: false,
    timeZone: sink.timeZone,
    ...(isCanary(member) && { isTest: true }),
  }
}

/** The routes that would send it there now; none: no route would. */
function findRoutes(config: Config, sink: Sink, destination: string, given: GivenEvent): string[] {
  const { decisions } = createRouter(config.route).explain(given)
  const items = planItems(decisions, (name) => (name === sink.name ? [destination] : []))
  return items.find((one) => one.destination === destination)?.routes ?? []
}

function listNotes(
  { digest, name }: SinkConfig,
  { sink, delivery, preview }: Omit<Rendered, 'notes'>,
): string[] {
  const [member] = delivery.members
  const severity = member?.event.severity ?? ''
  const waits =
    digest !== undefined &&
    (digest.immediate === null || severityRank(severity) < severityRank(digest.immediate))
  return [
    'nothing was sent',
    ...(member?.routes.length === 0 ? [`no route sends this event to ${name}`] : []),
    ...(waits ? ['it would wait for the digest; this is a message about it alone'] : []),
    ...(sink.batch === undefined ? [] : ['it may go in a batch with others']),
    ...(preview.added === undefined ? [] : [`added when it is sent: ${preview.added}`]),
  ]
}

function secretNotes({ name, reveals }: Sink, event: GivenEvent, isAsked: boolean): string[] {
  const isThere = event.secret !== undefined || event.stored?.payload.sealedSecret !== undefined
  if (reveals !== true || !isThere) return []
  return isAsked
    ? [`${name} reveals: the leaked secret is in clear`]
    : [`${name} reveals: what is masked here is sent in clear (--reveal)`]
}

async function show(context: Context, options: RenderOptions, rendered: Rendered): Promise<void> {
  const { sink, delivery, preview, notes } = rendered
  const html = options.html === true ? readersView(sink, preview) : undefined
  const shown = {
    json: {
      sink: sink.name,
      type: sink.type,
      destination: delivery.destination.label,
      delivery: delivery.id,
      subject: preview.subject ?? null,
      text: readableText(sink, preview),
      html: html ?? preview.html ?? null,
      headers: preview.headers ?? null,
      body: preview.body ?? null,
      notes,
    },
    lines: () => [html ?? textLines(sink, preview).join('\n')],
  }
  if (options.out === undefined) {
    if (options.output === 'text') context.terminal.printError(`(${notes.join('; ')})`)
    return print(context, options, shown)
  }
  const content = options.output === 'json' ? jsonText(shown.json, 2) : shown.lines().join('\n')
  writePrivateOutput('--out', options.out, `${content}\n`)
  context.terminal.printError(`${sanitize(options.out)} is written (${notes.join('; ')})`)
}

function textLines(sink: Sink, preview: Preview): string[] {
  const { subject, headers = {}, body } = preview
  const isForMachines = sink.type === 'webhook' || sink.type === 'pagerduty'
  return [
    ...(subject === undefined ? [] : [`Subject: ${subject}`, '']),
    ...(isForMachines ? Object.entries(headers).map(([name, value]) => `${name}: ${value}`) : []),
    ...(isForMachines ? ['', jsonText(body, 2)] : [readableText(sink, preview).trimEnd()]),
  ]
}

/** Of Slack the blocks, which is what its readers see, and not the text for notifications. */
function readableText({ type }: Sink, { text, body }: Preview): string {
  return type === 'slack' ? slackText(body) : text
}

const title = 'What tocsin would send'

function readersView({ name, type }: Sink, { html, body }: Preview): string {
  if (html !== undefined) return html
  if (type === 'slack') return drawPage({ title, content: drawSlack(body) })
  if (type === 'teams') return drawPage({ title, content: drawTeams(body) })
  throw new CommandError(
    'mistake',
    `--html: nobody reads "${name}" (${type}) as a page; leave it out`,
  )
}

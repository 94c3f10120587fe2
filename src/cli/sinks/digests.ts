/** The `digests` commands: send a digest now, or preview it. */

import { Command } from 'commander'
import { endDigest, type OpenEngine, previewDigest } from '../../daemon/for-commands/engine.ts'
import type { Destination, Sink } from '../../sinks/sink.ts'
import { redisNow } from '../../redis/scripts.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
  writePrivateOutput,
} from '../context.ts'
import { requireDigestSink, withEngine } from '../open/open-engine.ts'
import { CommandError, pluralize, findNamed, sanitize } from '../terminal.ts'
import { describeBlock } from './sinks-list.ts'

export function digestsCommand(context: Context): Command {
  const preview = addCommonOptions(new Command('preview'))
    .description('what the next digest would say now; changes nothing')
    .argument('<sink>', 'name of a sink with a digest')
    .option('--recipient <address>', 'of an e-mail sink (default: its first)')
    .option('--html <file>', 'write the HTML part of the mail into this file')
    .action((name: string, options: PreviewOptions) => showDigest(context, name, options))
  const send = addCommonOptions(new Command('send'))
    .description('end the window of a digest now and send it')
    .argument('<sink>', 'name of a sink with a digest')
    .action((name: string, options: CommonOptions) => sendDigests(context, name, options))
  return new Command('digests').addCommand(preview).addCommand(send)
}

interface SentDigest {
  destination: string
  /** `being_made`: a replica is making it right now. */
  outcome: 'queued' | 'nothing_to_tell' | 'being_made'
}

export async function sendDigests(
  context: Context,
  name: string,
  options: CommonOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { digests, blocked } = await withEngine(config, async (engine) => {
    const sink = requireDigestSink(engine, config, name)
    const sent: SentDigest[] = []
    for (const destination of engine.sinks.get(name)?.destinations ?? []) {
      const outcome = await sendDigest(engine, sink, destination)
      sent.push({ destination: destination.label, outcome })
    }
    const { destinations } = engine.sinks.get(name) ?? {}
    const reading = await engine.circuit.read(name, await redisNow(engine.store), destinations)
    return { digests: sent, blocked: describeBlock(reading) }
  })
  print(context, options, {
    json: { sink: name, digests, blocked: blocked ?? null },
    lines: () => [
      ...digests.map((digest) => sentLine(name, digest)),
      ...(blocked === undefined ? [] : [`  ${name} ${blocked}: it goes out when that is over`]),
    ],
  })
}

/** An empty digest goes on its schedule alone: a second call sends nothing. */
async function sendDigest(
  engine: OpenEngine,
  sink: DigestSink,
  destination: Destination,
): Promise<SentDigest['outcome']> {
  const { delivery } = await previewDigest(engine, sink, destination)
  if (delivery.summary?.total === 0) return 'nothing_to_tell'
  const messages = await endDigest(engine, sink, destination.id)
  return messages === 0 || messages === undefined ? 'being_made' : 'queued'
}

const outcomeWords: Record<SentDigest['outcome'], string> = {
  queued:
    'its digest is queued, a running daemon sends it within seconds; the next window has begun',
  nothing_to_tell:
    'nothing has come since the last digest; an empty one goes on its schedule alone',
  being_made: 'a running daemon makes its digest just now',
}

function sentLine(sink: string, { destination, outcome }: SentDigest): string {
  const place = destination === sink ? sink : `${sink}, ${destination}`
  return `${sanitize(place)}: ${outcomeWords[outcome]}`
}

export interface PreviewOptions extends CommonOptions {
  recipient?: string
  html?: string
}

interface Preview {
  destination: string
  events: number
  subject: string | null
  text: string
  html: string | null
  /** What the preview does not show. */
  notes: string[]
}

/** Runs the code that makes the real digest; secrets that a sink reveals stay masked here. */
async function showDigest(context: Context, name: string, options: PreviewOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const preview = await withEngine(config, async (engine) => {
    const sink = requireDigestSink(engine, config, name)
    const destination = findDestination(engine, name, options)
    return buildPreview(engine, sink, destination)
  })
  const { html, ...shown } = preview
  if (options.html !== undefined) writeHtml(name, html, options.html)
  print(context, options, {
    json: { sink: name, ...shown },
    lines: () => [
      ...shown.notes.map((note) => `(${note})`),
      ...(shown.subject === null ? [] : [`Subject: ${shown.subject}`, '']),
      shown.text.trimEnd(),
    ],
  })
}

/** Finds the named recipient, else the first. Throws CommandError. */
function findDestination(
  { sinks }: OpenEngine,
  name: string,
  { recipient }: PreviewOptions,
): Destination {
  const sink = sinks.get(name)
  const [first] = sink?.destinations ?? []
  if (!sink || !first) throw new Error(`${name} has no destination`)
  if (recipient === undefined) return first
  if (!hasRecipients(sink)) {
    throw new CommandError('mistake', `--recipient: "${name}" is no e-mail sink; leave it out`)
  }
  const named = sink.destinations.map((one) => ({ ...one, name: one.label.toLowerCase() }))
  return findNamed(named, recipient.toLowerCase(), 'recipient')
}

/** Whether a sink sends to people by their addresses, and not to a place of its own. */
function hasRecipients({ name, destinations }: Sink): boolean {
  return destinations.some(({ id }) => id !== name)
}

type DigestSink = ReturnType<typeof requireDigestSink>

async function buildPreview(
  engine: OpenEngine,
  digestSink: DigestSink,
  destination: Destination,
): Promise<Preview> {
  const sink = engine.sinks.get(digestSink.name)
  if (!sink?.preview) throw new Error(`${digestSink.name} has no preview`)
  const { delivery, lacking } = await previewDigest(engine, digestSink, destination)
  const events = delivery.summary?.total ?? 0
  const { subject = null, text, html = null } = sink.preview(delivery)
  return {
    destination: destination.label,
    events,
    subject,
    text,
    html,
    notes: [
      ...(events === 0 ? [] : ['<id> stands for the id that the message gets when it is sent']),
      ...(sink.destinations.length > 1
        ? [`for ${sanitize(destination.label)}; --recipient names another one`]
        : []),
      ...(events === 0 && !digestSink.digest.sendsEmpty
        ? ['an empty digest is not wanted (send_empty): nothing would be sent']
        : []),
      ...(sink.reveals === true ? ['secrets are masked here and sent in clear'] : []),
      ...(lacking > 0
        ? [`${pluralize(lacking, 'event')} not shown: the content is no longer kept`]
        : []),
    ],
  }
}

function writeHtml(sink: string, html: string | null, file: string): void {
  if (html === null) {
    throw new CommandError('mistake', `--html: "${sink}" is no e-mail sink; leave it out`)
  }
  writePrivateOutput('--html', file, html)
}

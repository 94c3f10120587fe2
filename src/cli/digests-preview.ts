import { writeFile } from 'node:fs/promises'
import { summaryOf } from '../delivery/summary-of.ts'
import { previewWindow, type DigestSink } from '../digest/digest-turn.ts'
import { mailContent } from '../sinks/email/mail-content.ts'
import type { Delivery, Destination } from '../sinks/sink.ts'
import { previewSlack } from '../sinks/slack/preview-slack.ts'
import { CommandError, findNamed } from './command-error.ts'
import { withTurns, type CommandTurns } from './command-turns.ts'
import { loadConfigFile } from './config-file.ts'
import { print, type CommonOptions, type Context } from './context.ts'
import { digestSinkOf } from './digest-sink.ts'
import { counted, harmless } from './words.ts'

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
  /** Said besides: what the preview does not show. */
  notes: string[]
}

/** By the code that makes the real one; secrets that a sink reveals stay masked here. */
export async function previewDigest(
  context: Context,
  name: string,
  options: PreviewOptions,
): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const preview = await withTurns(config, async (parts) => {
    const sink = digestSinkOf(parts, config, name)
    const destination = destinationOf(parts, name, options)
    return previewOf(parts, sink, destination)
  })
  const { html, ...shown } = preview
  if (options.html !== undefined) await writeHtml(name, html, options.html)
  print(context, options, {
    json: { sink: name, ...shown },
    lines: () => [
      ...shown.notes.map((note) => `(${note})`),
      ...(shown.subject === null ? [] : [`Subject: ${shown.subject}`, '']),
      shown.text.trimEnd(),
    ],
  })
}

/** The recipient that was named, else the first. Throws CommandError. */
function destinationOf(
  { sinks }: CommandTurns,
  name: string,
  { recipient }: PreviewOptions,
): Destination {
  const sink = sinks.get(name)
  const [first] = sink?.destinations ?? []
  if (!sink || !first) throw new Error(`${name} has no destination`)
  if (recipient === undefined) return first
  if (sink.type !== 'email') {
    throw new CommandError('mistake', `--recipient: "${name}" is no e-mail sink; leave it out`)
  }
  const named = sink.destinations.map((one) => ({ ...one, name: one.label.toLowerCase() }))
  return findNamed(named, recipient.toLowerCase(), 'recipient')
}

async function previewOf(
  { ledger, sinks, turns }: CommandTurns,
  collecting: DigestSink,
  destination: Destination,
): Promise<Preview> {
  const sink = sinks.get(collecting.name)
  if (!sink) throw new Error(`${collecting.name} was not built`)
  const { about, going } = await previewWindow(turns, collecting, destination.id)
  const { members, attachment } = await summaryOf(
    {
      sink,
      messageId: 'preview',
      book: (account) => ledger.books.find((book) => book.account === account),
      refs: ({ account }) =>
        Promise.resolve(going.filter((one) => one.account === account).map(({ ref }) => ref)),
      options: turns,
    },
    { about: JSON.stringify(about) },
  )
  const delivery: Delivery = {
    id: 'preview',
    destination,
    members,
    summary: about.summary,
    ...(attachment && { attachment }),
    attempt: 1,
    mayBeRepeat: false,
  }
  const events = about.summary.total
  return {
    destination: destination.label,
    events,
    ...renderedBy(sink.type, sink.name, delivery),
    notes: [
      ...(sink.destinations.length > 1 && sink.type === 'email'
        ? [`for ${harmless(destination.label)}; --recipient names another one`]
        : []),
      ...(events === 0 && !collecting.digest.sendsEmpty
        ? ['an empty digest is not wanted (send_empty): nothing would be sent']
        : []),
      ...(sink.reveals === true ? ['secrets are masked here and sent in clear'] : []),
      ...(members.length < about.shown.length
        ? [
            `${counted(about.shown.length - members.length, 'event')} not shown: the content is no longer kept`,
          ]
        : []),
    ],
  }
}

function renderedBy(
  type: 'slack' | 'email' | 'webhook',
  sink: string,
  delivery: Delivery,
): Pick<Preview, 'subject' | 'text' | 'html'> {
  if (type === 'email') {
    const { subject, text, html } = mailContent(delivery, sink)
    return { subject, text, html }
  }
  return { subject: null, text: previewSlack(delivery).inWords.text ?? '', html: null }
}

async function writeHtml(sink: string, html: string | null, file: string): Promise<void> {
  if (html === null) {
    throw new CommandError('mistake', `--html: "${sink}" is no e-mail sink; leave it out`)
  }
  try {
    await writeFile(file, html)
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
    throw new CommandError('mistake', `--html: ${file} cannot be written (${code})`, { cause })
  }
}

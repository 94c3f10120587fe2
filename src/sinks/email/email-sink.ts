/**
 * Sends one mail, about an event or a summary, over SMTP to one recipient at a time. A server that
 * takes a mail for two may refuse one of them. Accepted means that the server answered the end of
 * the message with 2xx.
 */
import { domainToASCII } from 'node:url'
import type { SendMailOptions } from 'nodemailer'
import { isKnownSeverity } from '../../event.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Attachment } from '../../messages/csv.ts'
import { zonedTime } from '../../messages/types/description.ts'
import type { Summary } from '../../messages/summary.ts'
import { describeSink, recipientHash } from '../destinations.ts'
import {
  type Delivery,
  type DeliveryMember,
  type Receipt,
  type SendOptions,
  type Sink,
  SinkError,
  soleMember,
} from '../sink.ts'
import {
  createDocumentRenderer,
  renderDocument,
  type RenderDocument,
} from '../templates/templates.ts'
import type { TemplateParts } from '../templates/template-config.ts'
import type { EmailConfig } from './config.ts'
import { renderHtml } from './mail-html.ts'
import { renderText } from './mail-text.ts'
import { createMailer, smtpLimits } from './smtp.ts'

export interface EmailEnvironment extends TemplateParts {
  logger: Logger
  clock: Clock
}

/** The reply to the message may take its full time, however slow what came before it was. */
const emailSendTimeoutMs = smtpLimits.answerMs + 5 * smtpLimits.beginMs

export function createEmailSink(config: EmailConfig, parts: EmailEnvironment): Sink {
  const { logger, clock } = parts
  const render = createDocumentRenderer(config, parts)
  const { name } = config
  const mailer = createMailer(config, clock)
  const described = describeSink(config, 'people')

  /**
   * The address comes from the configuration, never from the delivery: a queue may not name
   * recipients.
   */
  function findAddress(destinationId: string): string {
    const destination = described.destinations.find(({ id }) => id === destinationId)
    if (destination !== undefined) return destination.label
    throw new SinkError(
      'misconfigured',
      `sink ${name}: ${destinationId} is not among its recipients`,
    )
  }

  async function send(delivery: Delivery, options: SendOptions): Promise<Receipt> {
    const mail = composeMail(delivery, {
      sink: name,
      from: config.from,
      autoSubmitted: config.autoSubmitted,
      to: findAddress(delivery.destination.id),
      nowMs: clock.now(),
      render,
    })
    const showsSecrets = delivery.members.some(({ secret }) => secret !== undefined)
    const answer = await mailer.send(mail, { ...options, showsSecrets })
    logger.debug({ sink: name, delivery: delivery.id, answer }, 'mail accepted')
    return { answer }
  }

  return {
    ...described,
    canAttach: true,
    concurrency: 4,
    sendTimeoutMs: emailSendTimeoutMs,
    send,
    reach: async (signal) => ({ answer: await mailer.reach(signal) }),
    preview(delivery) {
      const { subject, text, html } = mailContent(delivery, name, render)
      return { subject, text, html }
    },
    close() {
      mailer.close()
      return Promise.resolve()
    },
  }
}

type MailAttachment = NonNullable<SendMailOptions['attachments']>[number]

export interface MailOptions {
  sink: string
  /** An address, or `Name <address>`. */
  from: string
  /** The recipient's address. */
  to: string
  /** Default: true. */
  autoSubmitted?: boolean | undefined
  /** The time of this attempt, milliseconds since 1970. */
  nowMs: number
  /** Default: with the built-in look. */
  render?: RenderDocument
}

export function composeMail(
  delivery: Delivery,
  { sink, from, to, nowMs, autoSubmitted = true, render }: MailOptions,
): SendMailOptions {
  const sender = parseSender(from)
  const { subject, text, html, list, thread, isUrgent } = mailContent(delivery, sink, render)
  // No mail has this id, but mail programs thread the mails that refer to it.
  const root = `<${thread}.tocsin@${sender.domain}>`
  return {
    from: { name: sender.name, address: sender.address },
    to: { name: '', address: to },
    envelope: { from: sender.address, to: [to] },
    subject: escapeEncodedWords(subject),
    date: new Date(nowMs),
    messageId: `<${delivery.id}.${recipientHash(to)}@${sender.domain}>`,
    inReplyTo: root,
    references: root,
    headers: {
      ...(autoSubmitted && { 'Auto-Submitted': 'auto-generated' }),
      'X-Auto-Response-Suppress': 'All',
      'List-Id': `<${list}.tocsin.${sender.domain}>`,
      ...(delivery.mayBeRepeat && { 'Tocsin-Possible-Repeat': 'true' }),
      ...(delivery.isTest === true && { 'Tocsin-Test': 'true' }),
      ...(isUrgent && { Importance: 'high', 'X-Priority': '1' }),
    },
    text,
    html,
    ...(delivery.attachment && { attachments: [toMailAttachment(delivery.attachment)] }),
  }
}

/**
 * An ASCII subject is sent without encoding, so a text that looks like an encoded word (RFC 2047)
 * would be decoded.
 */
function escapeEncodedWords(subject: string): string {
  return subject.replaceAll('=?', '= ?')
}

function toMailAttachment({ fileName, contentType, content }: Attachment): MailAttachment {
  return { filename: fileName, contentType, content: Buffer.from(content) }
}

interface Sender {
  name: string
  address: string
  /** ASCII, for ids. */
  domain: string
}

function parseSender(from: string): Sender {
  const match = /^([^<>]*)<([^<>]+)>$/.exec(from.trim())
  const address = (match?.[2] ?? from).trim()
  const domain = domainToASCII(address.slice(address.lastIndexOf('@') + 1))
  const name = match?.[1]
    ?.trim()
    .replace(/^"(.*)"$/, '$1')
    .trim()
  return { name: name || 'Tocsin', address, domain: domain || 'localhost' }
}

/** The content of a mail, and the list and thread that it belongs to. */
export interface MailContent {
  subject: string
  text: string
  html: string
  /** The list: a feed's events or a sink's digests. ASCII, for `List-Id`. */
  list: string
  /** The thread: mails of one list and one day; of an urgent mail, itself. ASCII. */
  thread: string
  /** Something critical, at once: mail programs show it first, and not below older mails. */
  isUrgent: boolean
}

/** Throws SinkError `invalid` for several events without a summary. */
export function mailContent(
  delivery: Delivery,
  sink: string,
  render = renderDocument,
): MailContent {
  const { id, summary, isTest } = delivery
  const document = render(delivery)
  const isAtOnce = summary === undefined || summary.kind === 'group' || summary.kind === 'storm'
  const isUrgent = isAtOnce && isCritical(document.severity) && isTest !== true
  const list = summary === undefined ? soleMember(delivery).feed : listName(summary, sink)
  const day = summary === undefined ? eventDay(soleMember(delivery)) : summaryDay(summary)
  return {
    isUrgent,
    subject: document.subject,
    text: renderText(document, sink),
    html: renderHtml(document, sink),
    list,
    thread: isUrgent ? id : `${list}.${day}`,
  }
}

/** An unknown severity counts as critical. */
function isCritical(severity: string | null): boolean {
  return severity !== null && (severity === 'critical' || !isKnownSeverity(severity))
}

function eventDay({ event: { matchedAtMs, createdAtMs }, fetchedAtMs }: DeliveryMember): string {
  return utcDay(matchedAtMs ?? createdAtMs ?? fetchedAtMs)
}

/** Mails of one feed share a list, however many events each is about. */
function listName({ digest, byFeed }: Summary, sink: string): string {
  const [feed, ...others] = byFeed
  if (digest !== undefined) return `digest.${sink}`
  return (feed === undefined || others.length > 0 ? sink : feed.name).replaceAll(
    /[^A-Za-z0-9_-]+/g,
    '-',
  )
}

function summaryDay({ digest, firstAtMs }: Summary): string {
  return digest === undefined ? utcDay(firstAtMs) : zonedTime(digest.timeZone).day(digest.dueAtMs)
}

function utcDay(atMs: number): string {
  const day = new Date(atMs)
  return Number.isNaN(day.getTime()) ? 'undated' : day.toISOString().slice(0, 10)
}

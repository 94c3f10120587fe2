/** One mail for one recipient, whole but for the sending: headers, threading, both parts. */
import { domainToASCII } from 'node:url'
import type { SendMailOptions } from 'nodemailer'
import { recipientHash } from '../destinations.ts'
import type { Attachment, Delivery } from '../sink.ts'
import { mailContent } from './mail-content.ts'

type MailAttachment = NonNullable<SendMailOptions['attachments']>[number]

export interface MailOptions {
  sink: string
  /** An address, or `Name <address>`. */
  from: string
  /** The recipient's address. */
  to: string
  /** The time of this attempt, milliseconds since 1970. */
  nowMs: number
}

export function composeMail(
  delivery: Delivery,
  { sink, from, to, nowMs }: MailOptions,
): SendMailOptions {
  const sender = parseSender(from)
  const { subject, text, html, list, thread } = mailContent(delivery, sink)
  // No mail has this id: mail programs put what refers to it together.
  const root = `<${thread}.tocsin@${sender.domain}>`
  return {
    from: { name: sender.name, address: sender.address },
    to: { name: '', address: to },
    envelope: { from: sender.address, to: [to] },
    subject: literal(subject),
    date: new Date(nowMs),
    messageId: `<${delivery.id}.${recipientHash(to)}@${sender.domain}>`,
    inReplyTo: root,
    references: root,
    headers: {
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      'List-Id': `<${list}.tocsin.${sender.domain}>`,
      ...(delivery.mayBeRepeat && { 'Tocsin-Possible-Repeat': 'true' }),
      ...(delivery.isTest === true && { 'Tocsin-Test': 'true' }),
    },
    text,
    html,
    ...(delivery.attachment && { attachments: [attached(delivery.attachment)] }),
  }
}

/** In ASCII nothing is encoded again: what looks like an encoded word (RFC 2047) would be read as one. */
function literal(subject: string): string {
  return subject.replaceAll('=?', '= ?')
}

function attached({ fileName, contentType, content }: Attachment): MailAttachment {
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

/** One mail for one recipient, whole but for the sending: headers, threading, both parts. */
import { domainToASCII } from 'node:url'
import { createHash } from 'node:crypto'
import type { SendMailOptions } from 'nodemailer'
import { cutText } from '../../messages/clean-text.ts'
import { renderMessage, type Message } from '../../messages/message.ts'
import type { Delivery } from '../sink.ts'
import { soleMember } from '../sole-member.ts'
import { renderHtml } from './mail-html.ts'
import { renderText } from './mail-text.ts'

const maxSubjectLength = 180

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
  const message = renderMessage(soleMember(delivery), delivery)
  const sender = parseSender(from)
  const origin = { sink, deliveryId: delivery.id }
  const root = threadRoot(message, sender.domain)
  return {
    from: { name: sender.name, address: sender.address },
    to: { name: '', address: to },
    envelope: { from: sender.address, to: [to] },
    subject: subjectOf(message),
    date: new Date(nowMs),
    messageId: `<${delivery.id}.${recipientHash(to)}@${sender.domain}>`,
    inReplyTo: root,
    references: root,
    headers: {
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      'List-Id': `<${message.feed}.tocsin.${sender.domain}>`,
      ...(delivery.mayBeRepeat && { 'Tocsin-Possible-Repeat': 'true' }),
      ...(delivery.isTest === true && { 'Tocsin-Test': 'true' }),
    },
    text: renderText(message, origin),
    html: renderHtml(message, origin),
  }
}

/** 16 hex digits that stand for an address in ids; the same whatever its case. */
export function recipientHash(address: string): string {
  return createHash('sha256').update(address.toLowerCase()).digest('hex').slice(0, 16)
}

function subjectOf(message: Message): string {
  return cutText(`[${message.severity.toUpperCase()}] ${message.title}`, maxSubjectLength)
}

/** No mail has this id: mail programs put what refers to it, a feed's mails of one day, together. */
function threadRoot(
  { feed, matchedAtMs, createdAtMs, fetchedAtMs }: Message,
  domain: string,
): string {
  const day = new Date(matchedAtMs ?? createdAtMs ?? fetchedAtMs)
  const text = Number.isNaN(day.getTime()) ? 'undated' : day.toISOString().slice(0, 10)
  return `<${feed}.${text}.tocsin@${domain}>`
}

interface Sender {
  name: string
  address: string
  /** ASCII, for ids. */
  domain: string
}

function parseSender(from: string): Sender {
  const match = /^\s*"?([^"<]*?)"?\s*<([^<>]+)>\s*$/.exec(from)
  const address = (match?.[2] ?? from).trim()
  const domain = domainToASCII(address.slice(address.lastIndexOf('@') + 1))
  return { name: match?.[1]?.trim() || 'Tocsin', address, domain: domain || 'localhost' }
}

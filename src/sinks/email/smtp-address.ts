import { SinkError } from '../sink.ts'
import type { EmailConfig } from './config.ts'

/** Where and as whom mail is handed in, taken apart from the operator's URL. */
export interface SmtpAddress {
  host: string
  port: number
  /** TLS from the first byte: smtps://. */
  isImplicitTls: boolean
  user: string
  password: string
}

const defaultPorts: Record<string, number> = { 'smtp:': 587, 'smtps:': 465 }

/** Reads the URL anew, file included. Throws SinkError `misconfigured`, never with a part of the URL. */
export function readSmtpAddress(config: EmailConfig): SmtpAddress {
  const url = parseUrl(revealUrl(config))
  const defaultPort = url && defaultPorts[url.protocol]
  if (!url || defaultPort === undefined || url.hostname === '') {
    throw misconfigured(
      config,
      'smtp must read smtp://host or smtps://host, with user and password',
    )
  }
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port) || defaultPort,
    isImplicitTls: url.protocol === 'smtps:',
    user: decode(config, url.username),
    password: decode(config, url.password),
  }
}

function revealUrl(config: EmailConfig): string {
  try {
    return config.smtp.reveal()
  } catch {
    throw misconfigured(config, 'the file of the smtp URL cannot be read; check smtp_file')
  }
}

/** No error of the parser is kept: it quotes the URL. */
function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined
}

function decode(config: EmailConfig, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw misconfigured(config, 'user or password in smtp has a stray %; write it as %25')
  }
}

function misconfigured(config: EmailConfig, what: string): SinkError {
  return new SinkError('misconfigured', `sink ${config.name}: ${what}`)
}

/** Whether mail to this host never leaves the machine. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

import { SinkError } from '../sink.ts'
import type { SlackConfig } from './config.ts'

/** Reads the webhook's URL anew, file included. Throws SinkError `misconfigured`, never with a part of it. */
export function readSlackUrl(config: SlackConfig): string {
  const url = URL.parse(reveal(config))
  if (url === null) throw misconfigured(config, 'url is not a URL')
  if (url.protocol !== 'https:' && !(config.allowPrivate && url.protocol === 'http:')) {
    throw misconfigured(config, 'url must begin with https://')
  }
  if (url.username !== '' || url.password !== '') {
    throw misconfigured(config, 'url may not hold a user or a password')
  }
  return url.href
}

function reveal(config: SlackConfig): string {
  try {
    return config.url.reveal()
  } catch {
    throw misconfigured(config, 'the file of the URL cannot be read; check url_file')
  }
}

function misconfigured(config: SlackConfig, what: string): SinkError {
  return new SinkError('misconfigured', `sink ${config.name}: ${what}`)
}

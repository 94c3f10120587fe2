/** Where a request goes, judged again at each use: a file may hold another address by now. */
import { messageOf } from '../../runtime/errors.ts'
import type { Secret } from '../../runtime/secret.ts'
import { SinkError } from '../sink.ts'

export interface Target {
  url: Secret
  allowPrivate: boolean
}

/** The URL as it is now. Errors name neither it nor, as a cause, the parser's error that quotes it. */
export function targetOf({ url, allowPrivate }: Target): URL {
  const target = parseUrl(url)
  if (target.username !== '' || target.password !== '') {
    throw misconfigured('url carries a user or password; use secret to prove who sends')
  }
  if (target.protocol === 'https:') return target
  if (target.protocol === 'http:' && allowPrivate) return target
  throw misconfigured('url is not https; plain http needs allow_private: true')
}

function parseUrl(url: Secret): URL {
  let text: string
  try {
    text = url.reveal()
  } catch (error) {
    throw misconfigured(`url cannot be read: ${messageOf(error)}`)
  }
  const target = URL.parse(text)
  if (target === null) throw misconfigured('url is not a URL; write https://host/path')
  return target
}

function misconfigured(what: string): SinkError {
  return new SinkError('misconfigured', what)
}

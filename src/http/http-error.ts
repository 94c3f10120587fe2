import { TocsinError } from '../runtime/errors.ts'

export type HttpReason =
  | 'port_in_use'
  | 'port_forbidden' // a port below 1024 without the right to it
  | 'bad_host' // not an address of this machine, or a name that does not resolve
  | 'other'

/** The HTTP server could not begin to listen. */
export class HttpError extends TocsinError {
  override readonly name = 'HttpError'
  readonly code = 'TOCSIN_HTTP'
  readonly reason: HttpReason

  constructor(reason: HttpReason, message: string, options: { cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.reason = reason
  }
}

/** Says which key of the configuration to change. */
export function listenError(cause: unknown, host: string, port: number): HttpError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
  const where = `http: cannot listen on ${host} port ${port}`
  switch (code) {
    case 'EADDRINUSE':
      return new HttpError(
        'port_in_use',
        `${where}: another process uses this port; stop it or set http.port to a free one`,
        { cause },
      )
    case 'EACCES':
      return new HttpError(
        'port_forbidden',
        `${where}: not permitted; set http.port to one above 1023`,
        { cause },
      )
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EINVAL':
      return new HttpError(
        'bad_host',
        `${where}: not an address of this machine; set http.host to one, e.g. 127.0.0.1 or 0.0.0.0`,
        { cause },
      )
    default:
      return new HttpError('other', `${where} (${code}); see http.host and http.port`, { cause })
  }
}

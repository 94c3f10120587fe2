/**
 * Connections as a company's network wants them: through its proxy, with its certificate authorities.
 * Their file is read at each connection, so that renewed ones need no restart.
 */
import { BlockList, isIP, setDefaultAutoSelectFamilyAttemptTimeout, type Socket } from 'node:net'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import { callbackify } from 'node:util'
import { errorCode, errorMessage } from './errors.ts'
import { type Outbound, proxyProblem } from './config/outbound-config.ts'
import { certificateLimits, readFileWithin } from './config/private-files.ts'
import { explainTlsFailure } from './config/web-address.ts'

// Node gives each address of a host 250 ms, and so loses one that is slow to another that is dead.
setDefaultAutoSelectFamilyAttemptTimeout(2_000)

/** Why a connection cannot leave. Its message says what to do after a semicolon, and no secret. */
export class OutboundError extends Error {
  /** `misconfigured`: only the operator, or whoever runs the proxy, can mend it. */
  readonly reason: 'misconfigured' | 'unavailable'

  constructor(message: string, isMisconfigured: boolean) {
    super(message)
    this.reason = isMisconfigured ? 'misconfigured' : 'unavailable'
  }
}

export interface TlsSettings {
  /** The same object as long as the file holds the same. */
  secureContext?: SecureContext
}

const contexts = new WeakMap<Outbound, { ca: string; context: SecureContext }>()

/** Reads the file of authorities. Throws OutboundError. */
export function readTlsSettings(outbound: Outbound): TlsSettings {
  if (outbound.caFile === undefined) return {}
  try {
    const ca = readFileWithin(outbound.caFile, certificateLimits)
    const known = contexts.get(outbound)
    if (known?.ca === ca) return { secureContext: known.context }
    const context = createSecureContext({ ca: [...getCACertificates('default'), ca] })
    contexts.set(outbound, { ca, context })
    return { secureContext: context }
  } catch (error) {
    const what = `ca_file cannot be used (${errorCode(error)})`
    throw new OutboundError(`${what}; run tocsin check`, true)
  }
}

/**
 * Returns the proxy for a host as a URL spells it; undefined: it is reached directly. A network in
 * `no_proxy` covers hosts that are addresses, since names are left to the proxy to resolve. Throws
 * OutboundError.
 */
export function findProxy({ proxy, noProxy = [] }: Outbound, hostname: string): URL | undefined {
  const host = hostname.toLowerCase().replace(/^\[|\]$|\.$/g, '')
  if (proxy === undefined || noProxy.some((entry) => covers(entry, host))) return undefined
  let text: string
  try {
    text = proxy.reveal()
  } catch (error) {
    throw new OutboundError(`proxy cannot be read: ${errorMessage(error)}`, true)
  }
  const problem = proxyProblem(text)
  if (problem === undefined) return new URL(text)
  throw new OutboundError(`proxy is ${problem.problem}; ${problem.remedy}`, true)
}

function covers(entry: string, host: string): boolean {
  const [address = '', length] = entry.split('/')
  const version = isIP(address)
  if (version === 0) return `.${host}`.endsWith(`.${entry.replace(/^\./, '')}`)
  if (isIP(host) !== version) return false
  const family = version === 4 ? 'ipv4' : 'ipv6'
  const network = new BlockList()
  network.addSubnet(address, Number(length ?? (version === 4 ? 32 : 128)), family)
  return network.check(host, family)
}

export interface TunnelEnd {
  hostname: string
  port: number
  /** For the whole answer of the proxy. */
  timeoutMs: number
}

/**
 * Has the proxy open a connection to a host, whose name the proxy resolves; undefined: the host is
 * reached directly. Throws OutboundError.
 */
export async function openTunnel(
  outbound: Outbound,
  { hostname, port, timeoutMs }: TunnelEnd,
): Promise<Socket | undefined> {
  const proxy = findProxy(outbound, hostname)
  if (proxy === undefined) return undefined
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname
  const authority = `${host}:${port}`
  const login = [proxy.username, proxy.password].map(decodeURIComponent).join(':')
  const basic = `Basic ${Buffer.from(login).toString('base64')}`
  const proxyHost = proxy.hostname.replace(/^\[|\]$/g, '')
  // an import of them would load Node's own undici, too
  const name = proxy.protocol === 'https:' ? 'node:https' : 'node:http'
  const request = process.getBuiltinModule(name).request({
    method: 'CONNECT',
    host: proxyHost,
    servername: isIP(proxyHost) === 0 ? proxyHost : '', // Node would take the name in `headers`
    port: proxy.port,
    path: authority,
    headers: { host: authority, ...(login !== ':' && { 'proxy-authorization': basic }) },
    agent: false,
    ...readTlsSettings(outbound),
  })
  const timer = setTimeout(() => request.destroy(new Error('the time was up')), timeoutMs)
  request.on('error', (error) => reject(unreachedError(error)))
  request.on('connect', ({ statusCode = 0 }, socket: Socket, begun) => {
    if (statusCode >= 200 && statusCode < 300) {
      socket.on('error', () => undefined) // whoever takes it over hears of it, too
      if (begun.length > 0) socket.unshift(begun) // a mail server speaks first
      return resolve(socket)
    }
    socket.destroy()
    reject(refusalError(statusCode, authority))
  })
  request.end()
  return promise.finally(() => clearTimeout(timer))
}

function unreachedError(error: Error): OutboundError {
  const tls = explainTlsFailure(error, 'https')
  if (tls !== undefined) return new OutboundError(`of the proxy: ${tls}`, true)
  const code = errorCode(error)
  const why = code === 'unknown' ? error.message : code
  return new OutboundError(`the proxy was not reached (${why})`, false)
}

function refusalError(status: number, authority: string): OutboundError {
  if (status === 407) {
    const remedy = 'write its user and password into proxy, as in http://user:password@host:3128'
    return new OutboundError(`the proxy asks for another login (407); ${remedy}`, true)
  }
  const what = `the proxy does not connect to ${authority} (${status})`
  if (status >= 500) return new OutboundError(what, false)
  return new OutboundError(`${what}; have it allowed there, or name the host in no_proxy`, true)
}

interface ConnectOptions {
  protocol: string
  hostname: string
  port: string
  /** An open connection to speak TLS on. */
  httpSocket?: Socket | undefined
}

export type Connected = (...result: [null, Socket] | [Error, null]) => void
export type Connect<Options> = (options: Options, callback: Connected) => unknown

/**
 * Returns a connector (undici's) that goes by the proxy, or not, as `outbound` says. `build` makes
 * the one that connects, or speaks TLS on the tunnel, anew when a certificate was renewed.
 */
export function createOutboundConnector<Options extends ConnectOptions>(
  outbound: Outbound,
  build: (tls: TlsSettings) => Connect<Options>,
  timeoutMs: number,
): Connect<Options> {
  let made: { tls: TlsSettings; connect: Connect<Options> } | undefined

  async function connect(options: Options): Promise<Socket> {
    const { protocol, hostname } = options
    const port = Number(options.port) || (protocol === 'https:' ? 443 : 80)
    const tunnel = await openTunnel(outbound, { hostname, port, timeoutMs })
    if (tunnel !== undefined && protocol !== 'https:') return tunnel
    const tls = readTlsSettings(outbound)
    if (made?.tls.secureContext !== tls.secureContext) made = undefined
    const { connect: open } = (made ??= { tls, connect: build(tls) })
    return new Promise((resolve, reject) => {
      open({ ...options, ...(tunnel && { httpSocket: tunnel }) }, (...[error, socket]) => {
        if (error) reject(error)
        else resolve(socket)
      })
    })
  }

  return callbackify(connect) as unknown as Connect<Options>
}

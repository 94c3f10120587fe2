/** From where a request comes: what a trusted proxy says of it, and whether it is this machine's own. */
import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { isLoopback } from '../../lib/config/web-address.ts'
import type { HttpConfig } from '../http/config.ts'

type Proxy = NonNullable<HttpConfig['proxy']>

interface Origin {
  /** Of the client: by the trusted proxy's word where it forwards, else of the peer. */
  address: string
  /** Whom the trusted proxy names; undefined: nobody. */
  named: string | undefined
}

export function findOrigin({ socket, headers }: FastifyRequest, proxy?: Proxy): Origin {
  const peer = plainAddress(socket.remoteAddress ?? '')
  if (proxy === undefined || !isFrom(proxy, peer)) return { address: peer, named: undefined }
  const named = proxy.header === undefined ? '' : textOf(headers[proxy.header])
  return { address: clientAddress(headers, peer, proxy), named: named === '' ? undefined : named }
}

function isFrom({ from }: Proxy, address: string): boolean {
  const version = isIP(address)
  if (version === 0) return false
  const family = (text: string): 'ipv4' | 'ipv6' => (isIP(text) === 6 ? 'ipv6' : 'ipv4')
  const trusted = new BlockList()
  for (const one of from) {
    const [network = '', bits] = one.split('/')
    if (bits === undefined) trusted.addAddress(network, family(network))
    else trusted.addSubnet(network, Number(bits), family(network))
  }
  return trusted.check(address, family(address))
}

/** The last address that no trusted proxy has: what stands before it may be the client's own words. */
function clientAddress(headers: IncomingHttpHeaders, peer: string, proxy: Proxy): string {
  const hops = textOf(headers['x-forwarded-for'])
    .split(',')
    .map((hop) => plainAddress(hop.trim()))
  const last = hops.findLast((hop) => !isFrom(proxy, hop))
  return last !== undefined && isIP(last) !== 0 ? last : peer
}

/** Node reads headers as Latin-1. */
function textOf(header: string | string[] | undefined): string {
  return Buffer.from([header ?? ''].flat().join(','), 'latin1')
    .toString()
    .trim()
}

/** An IPv4 address as such, also where it comes within IPv6. */
function plainAddress(address: string): string {
  const [, within] = /^::ffff:([\d.]+)$/i.exec(address) ?? []
  return within ?? address
}

/** Whether a peer is this machine, also as an IPv4 address within IPv6. */
function isLoopbackPeer(address: string | undefined): boolean {
  return /^(::ffff:)?127(\.\d{1,3}){3}$|^::1$/.test(address ?? '')
}

const forwarding = /^(?:x-forwarded-.*|forwarded|via|x-real-ip)$/

/**
 * Whether somebody at this machine asks without anything in between. A proxy may say nothing of
 * itself; nginx then speaks HTTP/1.0, which no browser does.
 */
export function isOwnMachine(request: FastifyRequest, { host }: Pick<HttpConfig, 'host'>): boolean {
  return (
    isLoopback(host) &&
    isLoopbackPeer(request.socket.remoteAddress) &&
    isLoopback(request.hostname) &&
    request.raw.httpVersion === '1.1' &&
    !Object.keys(request.headers).some((name) => forwarding.test(name))
  )
}

/**
 * Keeps sinks away from addresses that are not on the public internet. It checks the literal host,
 * every answer of the resolver, and the peer of the socket before a byte is sent. The checked
 * address is the one that is used, so a name that changes its answer gains nothing.
 */
import { BlockList, isIP, type LookupFunction } from 'node:net'
import type { Connect, Connected } from '../lib/outbound.ts'
import { SinkError } from './sink.ts'

/** IANA special-purpose registries, IPv4. */
const ipv4Ranges: Record<string, string[]> = {
  loopback: ['127.0.0.0/8'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'],
  'shared (carrier-grade NAT)': ['100.64.0.0/10'],
  'link-local': ['169.254.0.0/16'],
  // public by number, but the host's own service inside one cloud
  'cloud host': ['168.63.129.16/32'],
  unspecified: ['0.0.0.0/8'],
  documentation: ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24'],
  multicast: ['224.0.0.0/4'],
  reserved: ['192.0.0.0/24', '192.88.99.0/24', '198.18.0.0/15', '240.0.0.0/4'],
}

/**
 * IPv6: only 2000::/3 is global unicast (IANA IPv6 address space). So everything outside it is
 * listed, and within it the ranges that are set aside or carry an IPv4 address.
 */
const ipv6Ranges: Record<string, string[]> = {
  loopback: ['::1/128'],
  'IPv4-mapped': ['::ffff:0:0/96'],
  private: ['fc00::/7'],
  'link-local': ['fe80::/10'],
  multicast: ['ff00::/8'],
  documentation: ['2001:db8::/32', '3fff::/20'],
  // where in a local prefix (RFC 8215) the IPv4 stands, only its network knows
  'IPv4-carrying': ['64:ff9b:1::/48', '2002::/16'],
  reserved: ['2001::/23', '::/3', '4000::/2', '8000::/1'],
}

interface AddressClass {
  name: string
  ranges: BlockList
}

/**
 * Separate by family: a BlockList would match an IPv4 address against the IPv6 range of mapped
 * ones.
 */
const classes = {
  ipv4: parseClasses(ipv4Ranges, 'ipv4'),
  ipv6: parseClasses(ipv6Ranges, 'ipv6'),
}

function parseClasses(table: Record<string, string[]>, family: 'ipv4' | 'ipv6'): AddressClass[] {
  return Object.entries(table).map(([name, subnets]) => {
    const ranges = new BlockList()
    for (const subnet of subnets) {
      const [network = '', prefix] = subnet.split('/')
      ranges.addSubnet(network, Number(prefix), family)
    }
    return { name, ranges }
  })
}

/** For text that is not an address, such as a name that is still to be resolved. */
const notAnIpAddress = 'unreadable'

/**
 * Returns why an IP address is not public, in a word; undefined: it is public. Text that is not an
 * address counts as not public.
 */
export function nonPublicClass(address: string): string | undefined {
  const bare = address.replace(/%.*/s, '')
  const version = isIP(bare)
  if (version === 0) return notAnIpAddress
  const translated = version === 6 ? translatedIpv4(bare) : undefined
  if (translated !== undefined) return nonPublicClass(translated)
  const family = version === 4 ? 'ipv4' : 'ipv6'
  return classes[family].find(({ ranges }) => ranges.check(bare, family))?.name
}

/**
 * The IPv4 address that an address of NAT64 leads to (64:ff9b::/96, RFC 6052). By such the resolver
 * of a network without IPv4 answers for every host that has none but IPv4.
 */
function translatedIpv4(address: string): string | undefined {
  const canonical = URL.parse(`http://[${address}]`)?.hostname ?? ''
  const match = /^\[64:ff9b::(?:(?:(\w+):)?(\w+))?\]$/.exec(canonical)
  if (match === null) return undefined
  const [high, low] = match.slice(1).map((group) => Number.parseInt(group ?? '0', 16))
  return [high, low].flatMap((group = 0) => [group >> 8, group & 0xff]).join('.')
}

/**
 * Throws SinkError `forbidden_address` if a URL's host is itself an address that is not public, or
 * a name that always stands for one.
 */
export function refuseLiteral(hostname: string): void {
  const isOwn = /^(?:.+\.)?localhost\.?$/i.test(hostname)
  const reason = isOwn ? 'loopback' : nonPublicClass(hostname.replace(/^\[|\]$/g, ''))
  if (reason !== undefined && reason !== notAnIpAddress)
    throw forbiddenError(`the host of the URL is a ${reason} address`)
}

/** Wraps a socket lookup: it returns only the public ones of the addresses that `resolve` finds. */
export function publicLookup(resolve: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '')
      const addresses = Array.isArray(found) ? found : [{ address: found, family: isIP(found) }]
      const open = addresses.filter(({ address }) => nonPublicClass(address) === undefined)
      const [first] = open
      if (first === undefined) return callback(noPublicAddressError(addresses), '')
      if (options.all) callback(null, open)
      else callback(null, first.address, first.family)
    })
  }
}

/**
 * Wraps a connector (undici's): it hands over no socket whose peer is not public. Where a proxy is
 * the peer, it is the proxy that resolves the name and decides: the host is judged as it is written.
 */
export function guardConnector<Options extends { hostname: string }>(
  connect: Connect<Options>,
  isTunneled: (hostname: string) => boolean = () => false,
): (options: Options, callback: Connected) => void {
  return (options, callback) => {
    let hasPeer: boolean
    try {
      refuseLiteral(options.hostname)
      hasPeer = !isTunneled(options.hostname)
    } catch (error) {
      return callback(error as SinkError, null)
    }
    connect(options, (...result) => {
      const [error, socket] = result
      if (error) return callback(error, null)
      const reason = nonPublicClass(socket?.remoteAddress ?? '')
      if (socket === null || !hasPeer || reason === undefined) return callback(...result)
      socket.destroy()
      callback(forbiddenError(`the host of the URL led to a ${reason} address`), null)
    })
  }
}

function noPublicAddressError(addresses: { address: string }[]): SinkError {
  const reasons = new Set(addresses.map(({ address }) => nonPublicClass(address)))
  return forbiddenError(
    `the host name of the URL has only ${[...reasons].join(', ') || 'no'} addresses`,
  )
}

function forbiddenError(what: string): SinkError {
  return new SinkError(
    'forbidden_address',
    `${what}; where that is meant, set allow_private: true beside the address`,
  )
}

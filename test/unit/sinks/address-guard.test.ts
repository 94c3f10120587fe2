import type { LookupFunction, Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import {
  guardConnector,
  nonPublicClass,
  publicLookup,
  refuseLiteral,
} from '../../../src/sinks/address-guard.ts'
import { SinkError } from '../../../src/sinks/sink.ts'

describe('an address', () => {
  test.each([
    ['0.0.0.0', 'unspecified'],
    ['0.255.255.255', 'unspecified'],
    ['10.0.0.0', 'private'],
    ['10.255.255.255', 'private'],
    ['100.64.0.1', 'shared (carrier-grade NAT)'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['168.63.129.16', 'cloud host'],
    ['169.254.169.254', 'link-local'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.0.0.8', 'reserved'],
    ['192.0.2.1', 'documentation'],
    ['192.88.99.1', 'reserved'],
    ['192.168.1.1', 'private'],
    ['198.19.255.255', 'reserved'],
    ['198.51.100.7', 'documentation'],
    ['203.0.113.7', 'documentation'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'reserved'],
    ['::', 'reserved'],
    ['::1', 'loopback'],
    ['0:0:0:0:0:0:0:1', 'loopback'],
    ['::127.0.0.1', 'reserved'],
    ['::ffff:127.0.0.1', 'IPv4-mapped'],
    ['::ffff:8.8.8.8', 'IPv4-mapped'],
    ['::ffff:0:127.0.0.1', 'reserved'],
    ['64:ff9b::7f00:1', 'loopback'],
    ['64:ff9b::', 'unspecified'],
    ['64:ff9b::169.254.169.254', 'link-local'],
    ['64:ff9b::10.1.2.3', 'private'],
    ['0064:FF9B:0:0:0:0:c0a8:0001', 'private'],
    ['64:ff9b:0:0:1::1', 'reserved'],
    ['64:ff9b:1::1', 'IPv4-carrying'],
    ['100::1', 'reserved'],
    ['2001::1', 'reserved'],
    ['2001:db8::1', 'documentation'],
    ['2002:7f00:1::', 'IPv4-carrying'],
    ['3fff::1', 'documentation'],
    ['5f00::1', 'reserved'],
    ['fc00::1', 'private'],
    ['fd12:3456::1', 'private'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['fe80::1%a\nb', 'link-local'],
    ['10.0.0.1%x', 'private'],
    ['fec0::1', 'reserved'],
    ['ff02::1', 'multicast'],
    ['', 'unreadable'],
    ['localhost', 'unreadable'],
  ])('%s is %s', (address, expected) => {
    expect(nonPublicClass(address)).toBe(expected)
  })

  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.1',
    '168.63.129.15',
    '168.63.129.17',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '223.255.255.255',
    '2001:4860:4860::8888',
    '2606:4700:4700::1111',
    '2a00:1450::1',
    '64:ff9b::8.8.8.8',
    '64:ff9b::808:808',
  ])('%s is public', (address) => {
    expect(nonPublicClass(address)).toBeUndefined()
  })
})

describe('a literal host', () => {
  test.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://127.0.0.1./',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0x7f.0.0.1/',
    'http://0177.0.0.1/',
    'http://017700000001/',
    'http://0/',
    'http://0.0.0.0/',
    'http://１２７.0.0.1/',
    'http://127.0.0.1%2e/',
    'http://[::1]/',
    'http://[::]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[0:0:0:0:0:ffff:7f00:1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://localhost/',
    'http://api.localhost./',
    'http://169.254.169.254/latest/meta-data',
    'http://[fd00:ec2::254]/',
  ])('in %s is refused', (url) => {
    expect(() => refuseLiteral(new URL(url).hostname)).toThrow(SinkError)
  })

  test.each(['https://8.8.8.8/', 'https://[2606:4700:4700::1111]/', 'https://siem.example.com/'])(
    'in %s passes',
    (url) => {
      expect(() => refuseLiteral(new URL(url).hostname)).not.toThrow()
    },
  )
})

/** A resolver that gives these answers, one after the other. */
function answering(...answers: string[][]): LookupFunction {
  const left = [...answers]
  return (_hostname, _options, callback) => {
    const addresses = left.shift() ?? []
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
}

interface Found {
  error: Error | null
  address: unknown
  family: number | undefined
}

function look(lookup: LookupFunction, all: boolean): Promise<Found> {
  return new Promise((resolve) => {
    lookup('siem.example.com', { all }, (error, address, family) =>
      resolve({ error, address, family }),
    )
  })
}

describe('the lookup', () => {
  test('gives only the public ones of mixed answers, in their order', async () => {
    const lookup = publicLookup(answering(['10.0.0.1', '8.8.8.8', '::1', '2606:4700:4700::1111']))
    expect(await look(lookup, true)).toMatchObject({
      error: null,
      address: [
        { address: '8.8.8.8', family: 4 },
        { address: '2606:4700:4700::1111', family: 6 },
      ],
    })
  })

  test('gives one public address to who asks for one', async () => {
    const lookup = publicLookup(answering(['127.0.0.1', '8.8.8.8']))
    expect(await look(lookup, false)).toEqual({ error: null, address: '8.8.8.8', family: 4 })
  })

  test('finds the public address behind a private one, though one is asked for', async () => {
    const found = ['127.0.0.1', '8.8.8.8'].map((address) => ({ address, family: 4 }))
    const system: LookupFunction = (_hostname, { all }, callback) =>
      all ? callback(null, found) : callback(null, '127.0.0.1', 4)
    expect(await look(publicLookup(system), false)).toMatchObject({ address: '8.8.8.8' })
  })

  test('judges every answer anew: public first and private afterwards is refused', async () => {
    const lookup = publicLookup(answering(['8.8.8.8'], ['169.254.169.254']))
    expect(await look(lookup, true)).toMatchObject({ error: null })
    expect(await look(lookup, true)).toMatchObject({ error: { reason: 'forbidden_address' } })
  })

  test('says what it found instead of a public address', async () => {
    const found = await look(publicLookup(answering(['127.0.0.1', '::1', '10.0.0.1'])), true)
    expect(found.error?.message).toContain('has only loopback, private addresses;')
    const nothing = await look(publicLookup(answering([])), true)
    expect(nothing.error?.message).toContain('has only no addresses;')
  })
})

describe('the connector', () => {
  test('does not even connect to a literal address that is not public', async () => {
    let connections = 0
    const connect = guardConnector(() => (connections += 1))
    const result = await new Promise((resolve) => {
      connect({ hostname: '127.0.0.1' }, (...given) => resolve(given))
    })
    expect(result).toEqual([expect.objectContaining({ reason: 'forbidden_address' }), null])
    expect(connections).toBe(0)
  })

  test.each(['127.0.0.1', '::ffff:10.0.0.1', undefined])(
    'hands over no socket whose peer is %s, and destroys it',
    async (remoteAddress) => {
      let destroyed = false
      const socket = { remoteAddress, destroy: () => (destroyed = true) } as unknown as Socket
      const connect = guardConnector((_options, callback) => callback(null, socket))
      const result = await new Promise((resolve) => {
        connect({ hostname: 'siem.example.com' }, (...given) => resolve(given))
      })
      expect(result).toEqual([expect.objectContaining({ reason: 'forbidden_address' }), null])
      expect(destroyed).toBe(true)
    },
  )

  test('hands over a socket whose peer is public', async () => {
    const socket = { remoteAddress: '8.8.8.8' } as Socket
    const connect = guardConnector((_options, callback) => callback(null, socket))
    const result = await new Promise((resolve) => {
      connect({ hostname: 'siem.example.com' }, (...given) => resolve(given))
    })
    expect(result).toEqual([null, socket])
  })
})

import type { LookupFunction, Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  guardConnector,
  nonPublicClass,
  publicLookup,
  refuseLiteral,
} from '../../../src/sinks/address-guard.ts'
import { SinkError } from '../../../src/sinks/sink.ts'

const classes: Record<string, string> = {
  unspecified: '0.0.0.0 0.255.255.255 64:ff9b::',
  private:
    '10.0.0.0 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 64:ff9b::10.1.2.3 0064:FF9B:0:0:0:0:c0a8:0001 fc00::1 fd12:3456::1 10.0.0.1%x',
  'shared (carrier-grade NAT)': '100.64.0.1',
  loopback: '127.0.0.1 127.255.255.254 ::1 0:0:0:0:0:0:0:1 64:ff9b::7f00:1',
  'cloud host': '168.63.129.16',
  'link-local': '169.254.169.254 64:ff9b::169.254.169.254 fe80::1 fe80::1%eth0 fe80::1%a\nb',
  reserved:
    '192.0.0.8 192.88.99.1 198.19.255.255 255.255.255.255 :: ::127.0.0.1 ::ffff:0:127.0.0.1 64:ff9b:0:0:1::1 100::1 2001::1 5f00::1 fec0::1',
  documentation: '192.0.2.1 198.51.100.7 203.0.113.7 2001:db8::1 3fff::1',
  multicast: '224.0.0.1 ff02::1',
  'IPv4-mapped': '::ffff:127.0.0.1 ::ffff:8.8.8.8',
  'IPv4-carrying': '64:ff9b:1::1 2002:7f00:1::',
  unreadable: ' localhost',
}
const open =
  '1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1 168.63.129.15 168.63.129.17 172.15.255.255 172.32.0.0 192.167.255.255 223.255.255.255 2001:4860:4860::8888 2606:4700:4700::1111 2a00:1450::1 64:ff9b::8.8.8.8 64:ff9b::808:808'

describe('an address', () => {
  test.each(Object.entries(classes))('is %s: %s', (name, addresses) => {
    for (const address of addresses.split(' ')) expect(nonPublicClass(address)).toBe(name)
  })

  test('is public elsewhere', () => {
    expect(open.split(' ').filter((address) => nonPublicClass(address) !== undefined)).toEqual([])
  })

  test('of NAT64 is judged as the IPv4 in it', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        expect(nonPublicClass(`64:ff9b::${address}`)).toBe(nonPublicClass(address))
      }),
    )
  })

  test('of IPv4 is never public in its mapped, compatible, local NAT64 or 6to4 spelling', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        for (const prefix of ['::ffff:', '::', '64:ff9b:1::', '2002::']) {
          expect(nonPublicClass(`${prefix}${address}`)).toBeDefined()
        }
      }),
    )
  })
})

const refusedHosts =
  '127.0.0.1 127.1 127.0.0.1. 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 0 0.0.0.0 １２７.0.0.1 127.0.0.1%2e [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:7f00:1] [64:ff9b::7f00:1] localhost api.localhost. 169.254.169.254 [fd00:ec2::254]'

test.each(refusedHosts.split(' '))('the literal host %s is refused', (host) => {
  expect(() => refuseLiteral(new URL(`http://${host}/`).hostname)).toThrow(SinkError)
})

test.each(['8.8.8.8', '[2606:4700:4700::1111]', 'siem.example.com'])('%s passes', (host) => {
  expect(() => refuseLiteral(host)).not.toThrow()
})

test('a zone makes no address of a machine a name', () => {
  for (const host of ['fe80::1%eth0', '[fe80::1%a\nb]', '10.0.0.1%x', '[::1]'])
    expect(() => refuseLiteral(host)).toThrow(SinkError)
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

  test('reads a resolver that answers with one bare address', async () => {
    const bare: LookupFunction = (_hostname, _options, callback) => callback(null, '127.0.0.1', 4)
    expect(await look(publicLookup(bare), true)).toMatchObject({
      error: { reason: 'forbidden_address' },
    })
  })

  test('says what it found instead of a public address', async () => {
    const found = await look(publicLookup(answering(['127.0.0.1', '::1', '10.0.0.1'])), true)
    expect(found.error?.message).toContain('has only loopback, private addresses;')
    const nothing = await look(publicLookup(answering([])), true)
    expect(nothing.error?.message).toContain('has only no addresses;')
  })

  test('refuses an empty answer, and hands a failure on as it is', async () => {
    const failing: LookupFunction = (_hostname, _options, callback) =>
      callback(Object.assign(new Error('no'), { code: 'EAI_AGAIN' }), '', 0)
    expect(await look(publicLookup(answering([])), true)).toMatchObject({
      error: { reason: 'forbidden_address' },
    })
    expect(await look(publicLookup(failing), true)).toMatchObject({ error: { code: 'EAI_AGAIN' } })
  })
})

describe('the connector', () => {
  /** What a guarded connector hands over for a host, where the inner one finds this peer. */
  async function handed(hostname: string, remoteAddress?: string): Promise<object> {
    const seen = { connections: 0, destroyed: false }
    const socket = { remoteAddress, destroy: () => (seen.destroyed = true) } as unknown as Socket
    const connect = guardConnector((_options, callback) => {
      seen.connections += 1
      callback(null, socket)
    })
    const [error, given] = await new Promise<[unknown, unknown]>((resolve) => {
      connect({ hostname }, (...result) => resolve(result))
    })
    const { reason } = (error ?? {}) as { reason?: string }
    return { ...seen, reason, isHanded: given === socket }
  }
  const refused = { reason: 'forbidden_address', isHanded: false }

  test('does not even connect to a literal address that is not public', async () => {
    expect(await handed('127.0.0.1')).toMatchObject({ ...refused, connections: 0 })
  })

  test.each(['127.0.0.1', '::ffff:10.0.0.1', undefined])(
    'hands over no socket whose peer is %s, and destroys it',
    async (peer) => {
      expect(await handed('siem.example.com', peer)).toMatchObject({ ...refused, destroyed: true })
    },
  )

  test('hands over a socket whose peer is public', async () => {
    const expected = { reason: undefined, isHanded: true, destroyed: false }
    expect(await handed('siem.example.com', '8.8.8.8')).toMatchObject(expected)
  })
})

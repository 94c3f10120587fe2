/**
 * One GET to an address, under the rules of webhooks: no redirect, no private address unless allowed,
 * no retry. Success is 2xx; what goes wrong is thrown as a SinkError that does not name the address.
 */
import { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { signalWithin } from '../../runtime/clock.ts'
import { SinkError } from '../sink.ts'
import { targetOf, type Target } from './target.ts'
import { createTransport } from './transport.ts'

const pingTimeoutMs = 10_000

export interface PingOptions {
  /** Finds the addresses of a host; the system's resolver unless given. */
  resolve?: LookupFunction
  timeoutMs?: number
}

export async function sendPing(
  target: Target,
  { resolve = lookup, timeoutMs = pingTimeoutMs }: PingOptions = {},
): Promise<void> {
  const { allowPrivate } = target
  const url = targetOf(target)
  const transport = createTransport({ allowPrivate, resolve, maxConnections: 1 })
  try {
    const { status } = await transport.get(url, signalWithin(timeoutMs))
    if (status >= 200 && status < 300) return
    throw new SinkError('rejected', `the address answered ${status}`, { status })
  } finally {
    await transport.close()
  }
}

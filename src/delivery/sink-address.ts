/** Prints of the addresses of sinks, by which their circuits know another address. */
import { createSecretBox } from '../lib/sealed-secret.ts'
import type { Secret } from '../lib/config/secret.ts'
import { type SinkConfig, sinkTypeOf } from '../sinks/sink-types.ts'
import type { AccountLedger } from '../store/account-ledger.ts'
import type { Redis } from '../redis/client.ts'
import type { Keys } from '../redis/keys.ts'
import { type Circuit, createCircuit, type HashAddress } from './circuit.ts'

interface AddressParts {
  accounts: readonly { name: string; apiKey: Secret }[]
  sinks: readonly SinkConfig[]
}

interface OpenLedgers {
  redis: Redis
  keys: Keys
  ledgers: readonly Pick<AccountLedger, 'account'>[]
}

/** The circuits as a command reads and changes them. */
export function openCircuit({ redis, keys, ledgers }: OpenLedgers, config: AddressParts): Circuit {
  return createCircuit(redis, keys, createAddressHasher(config, ledgers))
}

/**
 * Hashes a sink's address for Redis with the API key of the leading account (else of the first):
 * nobody can test a guess there. Reads the address at each use, because the file that holds it may
 * change.
 */
export function createAddressHasher(
  { accounts, sinks }: AddressParts,
  ledgers: readonly Pick<AccountLedger, 'account'>[] = [],
): HashAddress {
  const [first] = accounts
  const account = accounts.find(({ name }) => name === ledgers[0]?.account) ?? first
  const box = account && createSecretBox(() => account.apiKey.reveal())
  const addresses = new Map(sinks.map((sink) => [sink.name, sinkTypeOf(sink).address(sink)]))
  return (sink) => {
    const address = addresses.get(sink)
    if (!box || !address) return ''
    try {
      return box.digest(['address of a sink', sink, address.reveal()])
    } catch {
      return '' // the file cannot be read: a disabled sink stays disabled
    }
  }
}

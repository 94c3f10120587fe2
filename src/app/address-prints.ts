import type { Config, SinkConfig } from '../config/config.ts'
import type { Book } from '../ledger/book.ts'
import type { PrintOf } from '../delivery/circuit.ts'
import { createSecretBox } from '../runtime/sealed-secret.ts'
import type { Secret } from '../runtime/secret.ts'

/**
 * What stands for a sink's address in Redis: a digest under the API key of the account that leads (else the
 * first), so that nobody can test a guess there. Read anew at each use, because the file that holds an address may change.
 */
export function addressPrints(
  { accounts, sinks }: Pick<Config, 'accounts' | 'sinks'>,
  books: readonly Pick<Book, 'account'>[] = [],
): PrintOf {
  const [first] = accounts
  const account = accounts.find(({ name }) => name === books[0]?.account) ?? first
  const box = account && createSecretBox(() => account.apiKey.reveal())
  const addresses = new Map(sinks.map((sink) => [sink.name, addressOf(sink)]))
  return (sink) => {
    const address = addresses.get(sink)
    if (!box || !address) return ''
    try {
      return box.digest(['address of a sink', sink, address.reveal()])
    } catch {
      return '' // a file that cannot be read: what is disabled stays so
    }
  }
}

function addressOf(sink: SinkConfig): Secret {
  return sink.type === 'email' ? sink.smtp : sink.url
}

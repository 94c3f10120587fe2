import { createSecretBox } from '../runtime/sealed-secret.ts'
import type { Shared } from './shared.ts'

/** Leaked secrets on their way through the ledger, each account's under its own API key. */
export interface LeakedSecrets {
  /** undefined where no sink reveals: then a secret is not kept at all. */
  seal?: (account: string, uid: string, secret: string) => string | undefined
  /** undefined for one that was sealed under another key, for another account or another uid. */
  open: (account: string, uid: string, sealed: string) => string | undefined
  /** What stands for a pair of login and secret; undefined where the key cannot be read. */
  pairId: (account: string, parts: readonly string[]) => string | undefined
}

export function buildSecrets({ config, logger }: Pick<Shared, 'config' | 'logger'>): LeakedSecrets {
  const boxes = new Map(
    config.accounts.map(({ name, apiKey }) => [name, createSecretBox(() => apiKey.reveal(), name)]),
  )
  const told = new Set<string>()

  /** Said once an account: credentials come by the thousand. */
  function withKey(account: string, work: () => string | undefined): string | undefined {
    try {
      return work()
    } catch {
      const said =
        'the API key cannot be read: leaked secrets go masked, and pairs are not recognised'
      if (!told.has(account)) logger.warn({ account }, said)
      told.add(account)
      return undefined
    }
  }

  return {
    ...(config.sinks.some(({ reveal }) => reveal) && {
      seal: (account, uid, secret) => withKey(account, () => boxes.get(account)?.seal(secret, uid)),
    }),
    open: (account, uid, sealed) => boxes.get(account)?.open(sealed, uid),
    pairId: (account, parts) => withKey(account, () => boxes.get(account)?.digest(parts)),
  }
}

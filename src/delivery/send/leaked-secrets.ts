/** The encryption of leaked secrets on their way through the ledger. */
import type { Logger } from '../../lib/logger.ts'
import { createSecretBox } from '../../lib/sealed-secret.ts'
import type { Secret } from '../../lib/config/secret.ts'

interface SecretParts {
  config: {
    accounts: readonly { name: string; apiKey: Secret }[]
    sinks: readonly { reveal?: boolean | undefined }[]
  }
  logger: Logger
}

/** Leaked secrets on their way through the ledger, encrypted under each account's own API key. */
export interface LeakedSecrets {
  /** undefined if no sink reveals secrets: then none is stored. */
  seal?: (account: string, uid: string, secret: string) => string | undefined
  /**
   * Returns undefined for a secret sealed under another key, for another account or another uid.
   */
  open: (account: string, uid: string, sealed: string) => string | undefined
  /** A digest of a pair of login and secret; undefined if the key cannot be read. */
  pairId: (account: string, parts: readonly string[]) => string | undefined
}

export function buildSecrets({ config, logger }: SecretParts): LeakedSecrets {
  const boxes = new Map(
    config.accounts.map(({ name, apiKey }) => [name, createSecretBox(() => apiKey.reveal(), name)]),
  )
  const warned = new Set<string>()

  /** Warns once per account: credentials come by the thousand. */
  function withKey(account: string, action: () => string | undefined): string | undefined {
    try {
      return action()
    } catch {
      const message =
        'the API key cannot be read: leaked secrets go masked, and pairs are not recognised'
      if (!warned.has(account)) logger.warn({ account }, message)
      warned.add(account)
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

/**
 * Names of everything in Redis. There are two kinds of hash tag: `{prefix}` for what all accounts
 * share, and `{prefix:account}` for one account's ledger: its scripts run in one Cluster slot.
 */
export interface Keys {
  /** Value of BullMQ's `prefix` option. */
  queuePrefix: string
  shared(...parts: string[]): string
  account(account: string, ...parts: string[]): string
}

export function createKeys(prefix: string): Keys {
  return {
    queuePrefix: `{${prefix}}`,
    shared: (...parts) => [`{${prefix}}`, ...parts].join(':'),
    account: (account, ...parts) => [`{${prefix}:${account}}`, ...parts].join(':'),
  }
}

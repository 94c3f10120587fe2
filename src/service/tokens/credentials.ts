/**
 * What is derived from an API key: a name for its things in Redis that reveals nothing, and a cipher
 * that only a holder of the key can open, so that no token lies readable in Redis or its files.
 */
import { createHash, createHmac } from 'node:crypto'
import { createSecretBox } from '../../runtime/sealed-secret.ts'
import type { AccountConfig } from '../config.ts'
import { ServiceError } from '../service-error.ts'

export interface Credentials {
  apiKey: string
  /** 16 hex digits; changes with the key, the tenant and the base URL. */
  fingerprint: string
  seal(token: string): string
  /** Null for what was not sealed under this key. */
  open(sealed: string): string | null
}

type KeyHolder = Pick<AccountConfig, 'apiKey' | 'tenantId' | 'baseUrl'>

/** Reads the key at each use, since its file may change under a running daemon. */
export function createCredentials(account: KeyHolder): () => Credentials {
  let known: Credentials | undefined
  return () => {
    const apiKey = readKey(account)
    if (known?.apiKey !== apiKey) known = derive(apiKey, account)
    return known
  }
}

export function fingerprintOf(token: string): string {
  return createHash('sha256').update(token).digest('hex').slice(0, 16)
}

function readKey({ apiKey }: KeyHolder): string {
  let key: string
  try {
    key = apiKey.reveal()
  } catch {
    throw new ServiceError('auth', 'the API key cannot be read; see api_key_file of the account')
  }
  if (/^[\x21-\x7e]+$/.test(key)) return key
  throw new ServiceError('auth', 'the API key is empty or holds characters that no key has')
}

function derive(apiKey: string, { tenantId, baseUrl }: KeyHolder): Credentials {
  const fingerprint = createHmac('sha256', 'tocsin api key fingerprint')
    .update(JSON.stringify([apiKey, tenantId ?? null, baseUrl]))
    .digest('hex')
    .slice(0, 16)
  const box = createSecretBox(() => apiKey)
  return {
    apiKey,
    fingerprint,
    seal: (token) => box.seal(token, fingerprint),
    open: (sealed) => box.open(sealed, fingerprint) ?? null,
  }
}

/** Credentials as the feeds and as the v4 search show them: each leaves out what the other has. */
import { createHash } from 'node:crypto'
import { withOffset } from '../history/draft.ts'
import type { CredentialInclude } from './credential-search-body.ts'
import type { SandboxCredential } from './sandbox-credential.ts'

/** At most so many of a credential's domains and addresses are shown (OpenAPI v4, CredentialsQueryPayload). */
const mostIncluded = 100

export function feedItemOf(credential: SandboxCredential): unknown {
  if ('raw' in credential) return credential.raw
  const { source, knownPasswordId, remediatedAtMs, ignoredAtMs } = credential
  return {
    ...recordOf(credential),
    known_password_id: knownPasswordId,
    source: source && { ...sourceOf(source), pii_tags: source.piiTags },
    remediated_at: timeOrNull(remediatedAtMs),
    ignored_at: timeOrNull(ignoredAtMs),
  }
}

export function tenantItemOf(credential: SandboxCredential): unknown {
  if ('raw' in credential) return credential.raw
  return { ...(feedItemOf(credential) as object), credential_hash: pairHashOf(credential) }
}

export function searchItemOfCredential(
  credential: SandboxCredential,
  include: readonly CredentialInclude[],
): unknown {
  if ('raw' in credential) return credential.raw
  const { source, knownPasswordId, authDomains } = credential
  return {
    ...recordOf(credential),
    source: source && {
      ...sourceOf(source),
      is_alert_enabled: true,
      pii_tags: source.piiTags,
      url: null,
    },
    known_password_id: include.includes('known_password_id') ? knownPasswordId : null,
    credential_hash: pairHashOf(credential),
    event_uid: credential.eventUid ?? null,
    ...(include.includes('auth_domains') && { auth_domains: authDomains.slice(0, mostIncluded) }),
    ...(include.includes('urls') && {
      urls: authDomains.slice(0, mostIncluded).map((host) => `https://${host}/login`),
    }),
  }
}

function recordOf(credential: SandboxCredential): Record<string, unknown> {
  return {
    id: credential.id,
    source_id: credential.source?.id ?? null,
    imported_at: withOffset(credential.importedAtMs),
    identity_name: credential.identityName,
    hash: credential.hash,
    hash_type: credential.hashType,
    domain: credential.domain,
  }
}

/** Names the pair of identity and secret, without telling it; null where there is no secret. */
function pairHashOf({ identityName, hash }: SandboxCredential): string | null {
  if (hash === null) return null
  return createHash('sha256')
    .update(JSON.stringify([identityName, hash]))
    .digest('hex')
}

function sourceOf(source: NonNullable<SandboxCredential['source']>): Record<string, unknown> {
  return {
    id: source.id,
    name: source.name,
    description_en: `What ${source.name} is.`,
    description_fr: `Ce que ${source.name} est.`,
    breached_at: timeOrNull(source.breachedAtMs),
    leaked_at: timeOrNull(source.leakedAtMs),
  }
}

function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : withOffset(ms)
}

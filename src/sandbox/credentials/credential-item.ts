/** Credentials as the v3 feed and as the v4 search show them: each leaves out what the other has. */
import { withOffset } from '../history/draft.ts'
import type { CredentialInclude } from './credential-search-body.ts'
import type { SandboxCredential } from './sandbox-credential.ts'

/** At most so many of a credential's domains are shown (service.md, Credential record). */
const mostAuthDomains = 10

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

export function searchItemOfCredential(
  credential: SandboxCredential,
  include: readonly CredentialInclude[],
): unknown {
  if ('raw' in credential) return credential.raw
  const { source, knownPasswordId, authDomains } = credential
  return {
    ...recordOf(credential),
    source: source && { ...sourceOf(source), is_alert_enabled: true },
    ...(include.includes('known_password_id') && { known_password_id: knownPasswordId }),
    ...(include.includes('auth_domains') && {
      auth_domains: authDomains.slice(0, mostAuthDomains),
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

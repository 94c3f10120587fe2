/** Whether a matching policy lets an event through to an asset (facts.md 6). */
import { stolenOf } from '../history/stolen.ts'
import type { SandboxAsset } from '../monitoring/sandbox-asset.ts'
import type { SandboxPolicy } from '../monitoring/sandbox-policy.ts'
import { hasQueried, hasWords } from './mention.ts'
import type { Sighting } from './sighting.ts'
import { textIn } from './term.ts'

type Agreement = (sighting: Sighting) => boolean

export function agreementOf(
  { type, value }: Pick<SandboxPolicy, 'type' | 'value'>,
  asset: Pick<SandboxAsset, 'type' | 'data'>,
): Agreement {
  switch (type) {
    case 'INCLUDED_KEYWORDS':
      return hasAny(wordsOf(value['keywords']))
    case 'EXCLUDED_KEYWORDS': {
      const isExcluded = hasAny(wordsOf(value['keywords']))
      return (sighting) => !isExcluded(sighting)
    }
    case 'LUCENE_QUERY':
      return hasQueried(textIn(value, 'query'))
    case 'ASTP_DOMAIN': // about credentials, which no event search shows
      return () => true
    case 'ASTP_COOKIES':
      return hasCookie(wordsOf(value['cookie_names']), value['match_subdomains'] === true, asset)
  }
}

function wordsOf(list: unknown): string[] {
  return Array.isArray(list) ? list.map(String) : []
}

function hasAny(keywords: readonly string[]): Agreement {
  const finders = keywords.map(hasWords)
  return (sighting) => finders.some((finds) => finds(sighting))
}

/**
 * A stealer log needs a cookie of one of the names; of a domain's asset, one of that host, or of one
 * below it if asked. What has no cookies is not for this policy to judge.
 */
function hasCookie(
  names: readonly string[],
  matchesSubdomains: boolean,
  { type, data }: Pick<SandboxAsset, 'type' | 'data'>,
): Agreement {
  const host = type === 'domain' ? textIn(data, 'fqdn').toLowerCase() : null
  const isOfHost = (key: string): boolean => {
    const bare = key.toLowerCase().replace(/^\./, '')
    return host === null || bare === host || (matchesSubdomains && bare.endsWith(`.${host}`))
  }
  return ({ event }) => {
    const cookies = stolenOf(event)?.cookies
    if (!cookies) return true
    return cookies.some(({ name, host_key: key }) => names.includes(name) && isOfHost(key))
  }
}

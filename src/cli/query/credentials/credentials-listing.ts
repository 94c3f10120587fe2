import { maskIdentity, maskKnown } from '../../../feeds/masking.ts'
import { parseTimestamp } from '../../../service/timestamps.ts'
import type { WireCredential } from '../../../service/wire/credentials.ts'
import { harmless } from '../../words.ts'
import type { Listing } from '../listing.ts'
import { mapTexts, masked, type RevealOption } from '../reveal.ts'
import { revealed } from '../revealed.ts'
import { shortTime } from '../short-time.ts'

/** As the service has it, secrets masked unless they are revealed. */
export function credentialRow(
  record: WireCredential,
  { reveal, secrets = [] }: { reveal: true | undefined; secrets?: readonly string[] },
): WireCredential {
  if (reveal) return record
  const known = maskKnown([...secrets, ...(record.hash ? [record.hash] : [])])
  // a year is a common password, and a time is no place for one
  const hidden = mapTexts(record, (text) => (parseTimestamp(text) === null ? known(text) : text))
  const shown = masked(hidden) as WireCredential
  // badly read dumps have login and secret in one
  const { identity_name } = shown
  return { ...shown, ...(identity_name && { identity_name: maskIdentity(identity_name) }) }
}

type Column = Listing<WireCredential>['columns'][number]

const identityWidth = 40

const secret: Column = { title: 'SECRET', width: 24, text: secretInWords }

/** A revealed secret has a line of its own, where it is whole. */
export function credentialsListing({ reveal }: RevealOption): Listing<WireCredential> {
  return {
    columns: [
      { title: 'IMPORTED (UTC)', width: 16, text: ({ imported_at }) => shortTime(imported_at) },
      {
        title: 'IDENTITY',
        width: identityWidth,
        text: ({ identity_name }) => identity_name ?? '',
      },
      ...(reveal ? [] : [secret]),
      {
        title: 'SOURCE',
        width: 40,
        text: ({ source, source_id }) => source?.name ?? String(source?.id ?? source_id ?? ''),
      },
    ],
    below: (record) => [...(reveal ? revealedLines(record) : []), ...linesBelow(record)],
    json: (record) => record,
    csv: csvKeys,
  }
}

/** Badly read dumps have login and secret in one, which the table may cut. */
function revealedLines({
  identity_name: identity,
  hash,
  hash_type: type,
}: WireCredential): string[] {
  const isCut = identity && (harmless(identity) !== identity || identity.length > identityWidth)
  return [
    ...(isCut ? [`identity: ${revealed(identity)}`] : []),
    ...(hash ? [`secret${type ? ` (${harmless(type)})` : ''}: ${revealed(hash)}`] : []),
  ]
}

const csvKeys = [
  'id',
  'imported_at',
  'identity_name',
  'hash',
  'hash_type',
  'domain',
  'auth_domains',
  'urls',
  'known_password_id',
  'credential_hash',
  'event_uid',
  'source_id',
  'source.id',
  'source.name',
  'source.description_en',
  'source.description_fr',
  'source.breached_at',
  'source.leaked_at',
  'source.is_alert_enabled',
  'source.pii_tags',
  'remediated_at',
  'ignored_at',
]

function secretInWords({ hash, hash_type }: WireCredential): string {
  if (!hash) return '–'
  return hash_type ? `${hash} (${hash_type})` : hash
}

function linesBelow(record: WireCredential): string[] {
  const { auth_domains, urls, event_uid, remediated_at, ignored_at } = record
  const sites = urls?.length ? urls : (auth_domains ?? [])
  const notes = [
    ...(sites.length > 0 ? [`logs in at ${sites.join(', ')}`] : []),
    ...(event_uid ? [`in ${event_uid}`] : []),
    ...(remediated_at ? [`remediated ${shortTime(remediated_at)}`] : []),
    ...(ignored_at ? [`ignored ${shortTime(ignored_at)}`] : []),
  ]
  return notes.length === 0 ? [] : [harmless(notes.join('; '))]
}

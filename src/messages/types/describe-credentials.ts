/** Describers of credentials, leaks and exposed systems. */
import { maskSecret } from '../../masking/mask-secret.ts'
import {
  wrapPresent,
  codeFact,
  type Describe,
  type Description,
  firstAndMore,
  readHost,
  joinPresent,
  phrase,
  listFact,
  revealedFact,
  type Subject,
  textFact,
  timeFact,
} from './description.ts'

/**
 * One account of a leak: an event, or a record of a credential feed or search, whose highlights are its
 * values.
 */
export function describeLeakedCredential({ event, fields, secret }: Subject): Description {
  const isRecord = event.kind === 'credential'
  const identity = fields.text('identity_name')
  const domain = fields.text('domain')
  const source =
    fields.text('source.name', 'source_name', 'leak_source.name') ?? emptyToNull(event.source)
  const imported = fields.time('imported_at') ?? (isRecord ? event.createdAtMs : null)
  return {
    typeLabel: 'Leaked credential',
    headline: identity ?? wrapPresent('an account at ', domain),
    tail: wrapPresent('in ', source),
    facts: [
      codeFact('Identity', identity),
      codeFact('Domain', domain),
      textFact('Source', source),
      revealedFact('Password', secret, maskIfPresent(fields.text('password', 'hash'))),
      timeFact('Imported', imported),
      textFact('Hash type', fields.text('hash_type')),
      listFact('Signs in to', fields.list('auth_domains')),
      timeFact('Breached', fields.time('source.breached_at', 'breached_at')),
      timeFact('Leaked', fields.time('source.leaked_at')),
      listFact('Personal data', fields.list('source.pii_tags')),
      codeFact('In event', fields.text('event_uid')),
    ],
    isOwnWords: isRecord,
  }
}

/** A whole collection of leaked accounts. */
export function describeLeak({ event, fields }: Subject): Description {
  const source = fields.text('source.name') ?? emptyToNull(event.source)
  const term =
    fields.text('term') ?? firstAndMore(fields.matched('domain', 'domains', 'emails', 'email'))
  const count = fields.number('leaked_credential_count')
  const amount = count === null ? null : `${count} ${count === 1 ? 'credential' : 'credentials'}`
  return {
    typeLabel: 'Leak',
    headline: term,
    tail: phrase({ in: source, with: amount }),
    facts: [
      codeFact('Term', term),
      textFact('Source', source),
      textFact('Credentials', count === null ? null : String(count)),
      listFact('Personal data', fields.list('pii_tags')),
      timeFact('Breached', fields.time('breached_at')),
      timeFact('Leaked', fields.time('leaked_at')),
      codeFact('Site', fields.text('site_url')),
    ],
  }
}

/** The outcome for a leaked credential that was tried against the tenant's own directory. */
export function describeCheckedCredential(typeLabel: string): Describe {
  return ({ event, fields }) => {
    const identity = fields.text('identity_name')
    return {
      typeLabel,
      headline: identity,
      tail: phrase({
        'checked by': emptyToNull(event.source),
        '–': fields.text('mitigation_action'),
      }),
      facts: [
        codeFact('Identity', identity),
        textFact('Mitigation', fields.text('mitigation_action')),
        textFact('Checked by', emptyToNull(event.source)),
        codeFact('Integration', fields.text('tenant_integration_id')),
      ],
    }
  }
}

/** A collection or a file of leaked data that names one of our identifiers. */
export function describeLeakedData(typeLabel: string): Describe {
  return ({ event, fields }) => {
    const source = fields.text('source.name', 'source_name') ?? emptyToNull(event.source)
    const file = fields.text('file_name', 'filename', 'path', 'name')
    const found = firstAndMore(
      fields.matched('email', 'emails', 'identity_name', 'username', 'domain'),
    )
    return {
      typeLabel,
      headline: joinPresent([found, wrapPresent(found === null ? '' : 'in ', file)], ' '),
      quote: fields.text('title'),
      tail: wrapPresent('in ', source),
      facts: [
        codeFact('Found', found),
        codeFact('File', file),
        textFact('Source', source),
        textFact('Title', fields.text('title')),
        codeFact('Page', fields.text('url')),
      ],
      content: fields.text('content'),
    }
  }
}

/** Masked long before; masked again because this is the last place that could leak it. */
function maskIfPresent(secret: string | null): string | null {
  return secret === null ? null : maskSecret(secret)
}

function emptyToNull(source: string): string | null {
  return source === '' ? null : source
}

/** A service that answers to the whole internet. */
export function describeService(subject: Subject): Description {
  const { event, fields } = subject
  const host = fields.text('hostname', 'ip_address') ?? fields.matched('domains', 'host', 'url')[0]
  const port = fields.text('port')
  const place = host === undefined ? null : joinPresent([host, port], ':')
  const product = fields.text('product', 'service')
  const vulnerabilities = fields.list('vulnerabilities')
  return {
    typeLabel: 'Exposed service',
    headline: place,
    tail: joinPresent(
      [
        wrapPresent('runs ', product, vulnerabilities.length === 0 ? '' : ','),
        vulnerabilityCount(vulnerabilities.length),
        product === null && vulnerabilities.length === 0
          ? wrapPresent('found by ', event.source)
          : null,
      ],
      ' ',
    ),
    facts: [
      codeFact('Host', place),
      textFact('Product', product),
      listFact('Vulnerabilities', vulnerabilities),
      codeFact('IP address', fields.text('ip_address')),
      textFact('Service', fields.text('service')),
      textFact('Found by', event.source),
      textFact('Organization', fields.text('organization')),
      textFact('Country', fields.text('country_code')),
      textFact('AS number', fields.text('asn')),
    ],
    content: fields.text('content'),
  }
}

/** A cloud bucket, or a file in one, that anybody can read. */
export function describeBucket(typeLabel: string): Describe {
  return ({ event, fields }) => {
    const address = fields.text('url')
    const host = fields.text('bucket.host') ?? (address === null ? null : readHost(address))
    const provider = fields.text('bucket.provider') ?? event.source
    const file = address === null ? null : readFileName(address)
    return {
      typeLabel,
      headline: joinPresent([file, wrapPresent(file === null ? '' : 'in ', host)], ' '),
      tail: wrapPresent('at ', provider),
      facts: [
        codeFact('Bucket', host),
        codeFact('Address', address),
        textFact('Provider', provider),
      ],
    }
  }
}

/** Source code, an image or a document that exposes something of ours. */
export function describeCode(typeLabel: string): Describe {
  return ({ event, fields, id }) => {
    const [tag] = [...fields.items('tags'), ...fields.items('tag')]
    const image = joinPresent(
      [tag?.text('repository_name') ?? null, tag?.text('name') ?? null],
      ':',
    )
    const address = fields.text('url', 'browser_url')
    const repository =
      fields.text('repository', 'repository_name', 'repo_name') ?? readRepositoryPath(address)
    const path = fields.text('code.path', 'path', 'file_name')
    const name = joinPresent(
      [path, wrapPresent(path === null ? '' : 'in ', image ?? repository)],
      ' ',
    )
    const author = fields.text('commit.author_name', 'code.commit_name', 'actor.name', 'actor')
    return {
      typeLabel,
      headline: name ?? idAsName(id),
      quote: fields.text('title'),
      tail: phrase({ by: author, on: event.source }),
      facts: [
        codeFact('Repository', image ?? repository ?? idAsName(id)),
        codeFact('File', path),
        textFact('Source', event.source),
        textFact('Author', author),
        textFact('Title', fields.text('title')),
        textFact('Kind of secret', fields.text('secret_type', 'detector', 'secrets_metadata.type')),
        codeFact('Page', address),
        timeFact('Pushed', fields.time('last_pushed_at', 'last_updated_at', 'code.commit_date')),
        codeFact('Digest', fields.text('digest')),
      ],
      content: fields.text('content', 'description'),
    }
  }
}

/** Returns an id that serves as a name: not a number or a digest, which tell a person nothing. */
export function idAsName(id: string | null): string | null {
  return id === null || /^[\d_:-]+$|^[\da-f]{12,}$|^[\da-f]{8}-[\da-f-]{27}$/iu.test(id) ? null : id
}

function readFileName(address: string): string | null {
  const path = URL.canParse(address) ? new URL(address).pathname : ''
  const last = path.split('/').at(-1) ?? ''
  try {
    return last === '' ? null : decodeURIComponent(last)
  } catch {
    return last
  }
}

function readRepositoryPath(address: string | null): string | null {
  const path = address !== null && URL.canParse(address) ? new URL(address).pathname : ''
  const parts = path.split('/').filter((part) => part !== '' && part !== 'r' && part !== '_')
  return parts.length === 0 ? null : parts.slice(0, 2).join('/')
}

function vulnerabilityCount(count: number): string | null {
  if (count === 0) return null
  return count === 1 ? '1 known vulnerability' : `${count} known vulnerabilities`
}

import { maskSecret } from '../events/mask-secret.ts'
import {
  around,
  codeFact,
  firstOf,
  joined,
  listFact,
  textFact,
  timeFact,
  type Describe,
  type Description,
  type Fact,
  type Subject,
} from './description.ts'
import { inertLine } from './inert-line.ts'

/** One account of a leak or a combolist, as an event. */
export function describeLeakedCredential({ event, fields, secret }: Subject): Description {
  const identity = fields.text('identity_name')
  const source =
    fields.text('source.name', 'source_name', 'leak_source.name') ?? known(event.source)
  return {
    typeLabel: 'Leaked credential',
    headline: identity,
    tail: around('in ', source),
    facts: [
      codeFact('Identity', identity),
      textFact('Source', source),
      passwordFact(secret, masked(fields.text('password', 'hash'))),
      timeFact('Imported', fields.time('imported_at')),
      textFact('Hash type', fields.text('hash_type')),
      timeFact('Breached', fields.time('source.breached_at', 'breached_at')),
      listFact('Signs in to', fields.list('auth_domains')),
    ],
  }
}

/** One record of a credential feed or search: all it has stands in its highlights. */
export function describeCredential({ event, fields, secret }: Subject): Description {
  const identity = fields.text('identity_name')
  const domain = fields.text('domain')
  const source = fields.text('source.name') ?? known(event.source)
  return {
    typeLabel: 'Leaked credential',
    headline: identity ?? around('an account at ', domain),
    tail: around('in ', source),
    facts: [
      codeFact('Identity', identity),
      codeFact('Domain', domain),
      textFact('Source', source),
      timeFact('Imported', event.createdAtMs),
      passwordFact(secret, masked(fields.text('password'))),
      textFact('Hash type', fields.text('hash_type')),
      listFact('Signs in to', fields.list('auth_domains')),
      timeFact('Breached', fields.time('source.breached_at')),
      timeFact('Leaked', fields.time('source.leaked_at')),
      listFact('Personal data', fields.list('source.pii_tags')),
    ],
    isOwnWords: true,
  }
}

/** A whole collection of leaked accounts. */
export function describeLeak({ event, fields }: Subject): Description {
  const source = fields.text('source.name') ?? known(event.source)
  const term =
    fields.text('term') ?? firstOf(fields.matched('domain', 'domains', 'emails', 'email'))
  const count = fields.number('leaked_credential_count')
  const amount = count === null ? null : `${count} ${count === 1 ? 'credential' : 'credentials'}`
  return {
    typeLabel: 'Leak',
    headline: term,
    tail: joined([around('in ', source), around('with ', amount)], ' '),
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

/** What became of a leaked credential that was tried against the tenant's own directory. */
export function describeCheckedCredential(typeLabel: string): Describe {
  return ({ event, fields }) => {
    const identity = fields.text('identity_name')
    return {
      typeLabel,
      headline: identity,
      tail: joined(
        [
          around('checked by ', known(event.source)),
          around('– ', fields.text('mitigation_action')),
        ],
        ' ',
      ),
      facts: [
        codeFact('Identity', identity),
        textFact('Mitigation', fields.text('mitigation_action')),
        textFact('Checked by', known(event.source)),
        codeFact('Integration', fields.text('tenant_integration_id')),
      ],
    }
  }
}

/** A collection or a file of leaked data that names somebody of ours. */
export function describeLeakedData(typeLabel: string): Describe {
  return ({ event, fields }) => {
    const source = fields.text('source.name', 'source_name') ?? known(event.source)
    const file = fields.text('file_name', 'filename', 'path', 'name')
    const found = firstOf(fields.matched('email', 'emails', 'identity_name', 'username', 'domain'))
    return {
      typeLabel,
      headline: joined([found, around(found === null ? '' : 'in ', file)], ' '),
      quote: fields.text('title'),
      tail: around('in ', source),
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

/** In clear it is said where dots and schemes are written so that they do not link: it is no longer as typed. */
function passwordFact(secret: string | null, mask: string | null): Fact | null {
  if (secret === null) return codeFact('Password', mask)
  return codeFact(
    inertLine(secret, Infinity) === secret ? 'Password' : 'Password (defanged)',
    secret,
  )
}

/** Masked long before; once more, because this is the last place that could leak it. */
function masked(secret: string | null): string | null {
  return secret === null ? null : maskSecret(secret)
}

function known(source: string): string | null {
  return source === '' ? null : source
}

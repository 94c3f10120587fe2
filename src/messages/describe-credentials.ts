import { maskSecret } from '../events/mask-secret.ts'
import {
  around,
  codeFact,
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
    headline: joined([identity ?? event.identifiers[0]?.name ?? null, around('in ', source)], ' '),
    facts: [
      codeFact('Identity', identity),
      textFact('Source', source),
      timeFact('Imported', fields.time('imported_at')),
      passwordFact(secret, masked(fields.text('password', 'hash'))),
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
    headline: joined([identity ?? around('an account at ', domain), around('in ', source)], ' '),
    facts: [
      codeFact('Identity', identity),
      codeFact('Domain', domain),
      textFact('Source', source),
      timeFact('Imported', event.createdAtMs),
      passwordFact(secret, masked(fields.text('password'))),
      textFact('Hash type', fields.text('hash_type')),
      listFact('Signs in to', event.highlights['auth_domains'] ?? []),
      timeFact('Breached', fields.time('source.breached_at')),
      timeFact('Leaked', fields.time('source.leaked_at')),
      listFact('Personal data', event.highlights['source.pii_tags'] ?? []),
    ],
    isOwnWords: true,
  }
}

/** A whole collection of leaked accounts. */
export function describeLeak({ event, fields }: Subject): Description {
  const source = fields.text('source.name') ?? known(event.source)
  const count = fields.number('leaked_credential_count')
  const amount = count === null ? null : `${count} ${count === 1 ? 'credential' : 'credentials'}`
  return {
    typeLabel: 'Leak',
    headline: joined([source, around('with ', amount), around('for ', fields.text('term'))], ' '),
    facts: [
      textFact('Source', source),
      textFact('Credentials', count === null ? null : String(count)),
      listFact('Personal data', fields.list('pii_tags')),
      codeFact('Term', fields.text('term')),
      timeFact('Breached', fields.time('breached_at')),
      timeFact('Leaked', fields.time('leaked_at')),
      codeFact('Site', fields.text('site_url')),
    ],
  }
}

/** What became of a leaked credential that was tried against the tenant's own directory. */
export function describeCheckedCredential(typeLabel: string): Describe {
  return ({ fields }) => ({
    typeLabel,
    headline: joined(
      [fields.text('identity_name'), around('– ', fields.text('mitigation_action'))],
      ' ',
    ),
    facts: [
      codeFact('Identity', fields.text('identity_name')),
      textFact('Mitigation', fields.text('mitigation_action')),
      codeFact('Integration', fields.text('tenant_integration_id')),
    ],
  })
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

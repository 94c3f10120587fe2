import {
  around,
  codeFact,
  joined,
  listFact,
  textFact,
  timeFact,
  type Description,
  type Subject,
} from './description.ts'

/** A victim named on an extortion site. The group is the uid's source. */
export function describeRansomleak({ event, fields }: Subject): Description {
  const victim = fields.text(
    'victim_information.display_name',
    'victim_information.name',
    'victim_information.domain',
    'title',
    'docmeta.title',
    'victim_metadata.display_name',
    'victim_metadata.name',
    'victim_name',
  )
  const place = joined(
    ['city', 'state', 'country'].map((key) => fields.text(`victim_information.${key}`)),
    ', ',
  )
  const group = event.source === '' ? null : event.source
  return {
    typeLabel: 'Ransom leak',
    headline: victim,
    tail: around(victim === null ? 'mentioned by ' : 'named by ', group),
    facts: [
      textFact('Victim', victim),
      textFact('Group', group),
      codeFact('Domain', fields.text('victim_information.domain', 'victim_metadata.domain')),
      textFact('Industry', fields.text('victim_information.industry')),
      textFact('Place', place),
      textFact('Employees', fields.text('victim_information.employee_count')),
      codeFact('Leak page', fields.text('url', 'response_url')),
      listFact('Other domains', fields.list('victim_information.alternative_domains')),
    ],
    content: fields.text('content', 'body', 'main'),
  }
}

/** A domain that looks like one of ours. The docs call the type `domain`, its model `lookalike`. */
export function describeLookalike({ event, fields, id }: Subject): Description {
  const domain = fields.text('domain', 'name') ?? id
  const originals = fields.list('identifier_domains', 'identifier_domain')
  const matched = originals.length > 0 ? originals : event.identifiers.map(({ name }) => name)
  return {
    typeLabel: 'Lookalike domain',
    headline: joined([domain, around('resembles ', matched[0] ?? null)], ' '),
    facts: [
      codeFact('Domain', domain),
      listFact('Resembles', matched),
      timeFact('Registered', fields.time('registered_at')),
      textFact('Issuer', fields.text('issuer')),
      textFact('Certificate subject', fields.text('subject')),
      textFact('Feed', fields.text('feed')),
    ],
  }
}

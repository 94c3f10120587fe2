/** Describers of posts, market listings, cards, ransom leaks and lookalike domains. */
import {
  wrapPresent,
  codeFact,
  type Describe,
  type Description,
  firstAndMore,
  formatTime,
  joinPresent,
  phrase,
  listFact,
  type Subject,
  textFact,
  timeFact,
} from './description.ts'

/** A message in a chat channel. */
export function describeChatMessage({ event, fields }: Subject): Description {
  const conversation = fields.text('context.conversation_name', 'context.conversation_id')
  const author = readAuthor(fields)
  return {
    typeLabel: 'Chat message',
    headline: null,
    quote: null,
    tail: phrase({ by: author, 'in channel': conversation, on: event.source }),
    facts: [
      textFact('Conversation', conversation),
      textFact('Author', author),
      textFact('Platform', event.source),
      timeFact('Posted', fields.time('posted_at')),
      textFact('Forwarded from', readForwardedFrom(fields)),
    ],
    content: fields.text('content', 'message'),
  }
}

/** A post or a topic of a forum. */
export function describeForum(typeLabel: string): Describe {
  return ({ event, fields }) => {
    const topic = fields.text('context.topic_title', 'title_en', 'title')
    const author = readAuthor(fields)
    return {
      typeLabel,
      headline: null,
      quote: topic,
      tail: phrase({ by: author, on: event.source }),
      facts: [
        textFact('Topic', topic),
        textFact('Author', author),
        textFact('Forum', event.source),
        textFact('Category', fields.text('context.category_name', 'category_name')),
        timeFact('Posted', fields.time('posted_at')),
        codeFact('Page', fields.text('url')),
      ],
      content: fields.text('content', 'first_post_preview'),
    }
  }
}

/** A post of a blog or news site. It may lack a title: then the description serves. */
export function describeBlogPost({ event, fields }: Subject): Description {
  const title = fields.text('title', 'description')
  return {
    typeLabel: 'Blog post',
    headline: null,
    quote: title,
    tail: wrapPresent('on ', event.source),
    facts: [
      textFact('Description', title),
      textFact('Site', event.source),
      timeFact('Posted', fields.time('posted_at')),
      codeFact('Page', fields.text('url')),
    ],
    content: fields.text('content'),
  }
}

/** A text on a paste site. */
export function describePaste({ event, fields }: Subject): Description {
  const title = fields.text('title')
  const author = readAuthor(fields)
  return {
    typeLabel: 'Paste',
    headline: null,
    quote: title,
    tail: phrase({ by: author, on: event.source }),
    facts: [
      textFact('Title', title),
      textFact('Site', event.source),
      textFact('Author', author),
      textFact('Syntax', fields.text('syntax')),
      timeFact('Expires', fields.time('expires_at')),
      codeFact('Page', fields.text('url')),
    ],
    content: fields.text('content'),
  }
}

function readAuthor(fields: Subject['fields']): string | null {
  return fields.text('actor.name', 'actor.id', 'actor')
}

function readForwardedFrom(fields: Subject['fields']): string | null {
  return fields.text(
    'forward_info.forwarded_from',
    'forward_info.forwarded_from_username',
    'forward_info.forwarded_from_chat_id',
  )
}

/** Goods on an illicit market. The price is a number now and was a text in older versions. */
export function describeListing({ event, fields }: Subject): Description {
  const price = joinPresent([fields.text('price'), fields.text('currency')], ' ')
  const seller = fields.text('actor.name', 'actor.id', 'actor')
  const title = fields.text('title')
  return {
    typeLabel: 'Market listing',
    headline: null,
    quote: title,
    tail: phrase({ for: price, by: seller, on: event.source }),
    facts: [
      textFact('Title', title),
      textFact('Market', event.source),
      textFact('Price', price),
      textFact('Seller', seller),
      textFact('Category', fields.text('context.category_name', 'category_name')),
      textFact('In stock', fields.text('stock_count')),
      listFact('Ships from', fields.list('ship_from')),
      listFact('Ships to', fields.list('ship_to')),
      codeFact('Page', fields.text('url')),
    ],
    content: fields.text('content'),
  }
}

const withCard = [
  ['has_cvv', 'CVV'],
  ['has_pin', 'PIN'],
  ['has_track_1', 'track 1'],
  ['has_vbv', '3-D Secure'],
  ['has_ssn', 'social security number'],
  ['has_date_of_birth', 'date of birth'],
  ['has_mother_maiden_name', "mother's maiden name"],
  ['has_phone', 'phone'],
] as const

/** Many cards of one bank's prefix for sale at once. */
export function describeCardBase({ event, fields }: Subject): Description {
  const bins = fields.list('bins', 'bin')
  const title = fields.text('title', 'name')
  return {
    typeLabel: 'Card collection for sale',
    headline: wrapPresent('BIN ', firstAndMore(bins)),
    quote: title,
    tail: phrase({
      for: joinPresent([fields.text('price'), fields.text('currency')], ' '),
      on: event.source,
    }),
    facts: [
      listFact('BINs', bins, 'code'),
      textFact('Title', title),
      textFact('Market', event.source),
      textFact('Seller', fields.text('actor.name', 'actor.id', 'actor')),
    ],
    content: fields.text('content', 'description'),
  }
}

/** A payment card for sale. Its number never comes with it, only the bank's prefix. */
export function describeCard({ event, fields }: Subject): Description {
  const bin = fields.text('bin')
  const bank = fields.text('bank')
  const expires = fields.time('expiration')
  return {
    typeLabel: 'Payment card',
    headline: joinPresent([wrapPresent('BIN ', bin), bank, fields.text('brand')], ', '),
    tail: wrapPresent('on ', event.source),
    facts: [
      codeFact('BIN', bin),
      textFact('Bank', bank),
      textFact('Market', event.source),
      textFact('Brand', fields.text('brand')),
      textFact('Expires', expires === null ? null : (formatTime(expires)?.slice(0, 7) ?? null)),
      textFact('Country', fields.text('country')),
      listFact(
        'Sold with',
        withCard.filter(([key]) => fields.isTrue(key)).map(([, label]) => label),
      ),
    ],
  }
}

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
  const place = joinPresent(
    ['city', 'state', 'country'].map((key) => fields.text(`victim_information.${key}`)),
    ', ',
  )
  const group = event.source === '' ? null : event.source
  return {
    typeLabel: 'Ransom leak',
    headline: victim,
    tail: wrapPresent(victim === null ? 'mentioned by ' : 'named by ', group),
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

/**
 * A domain that looks like one of ours; the type is `domain` or `lookalike` (docs/api-notes.md,
 * Events).
 */
export function describeLookalike({ event, fields, id }: Subject): Description {
  const domain = fields.text('domain', 'name') ?? id
  const originals = fields.list('identifier_domains', 'identifier_domain')
  const matched = originals.length > 0 ? originals : event.identifiers.map(({ name }) => name)
  return {
    typeLabel: 'Lookalike domain',
    headline: joinPresent([domain, wrapPresent('resembles ', matched[0] ?? null)], ' '),
    facts: [
      codeFact('Domain', domain),
      listFact('Resembles', matched),
      timeFact('Registered', fields.time('registered_at')),
      textFact('Issuer', fields.text('issuer')),
      textFact('Certificate subject', fields.text('subject')),
      textFact('Found in', fields.text('feed')),
    ],
  }
}

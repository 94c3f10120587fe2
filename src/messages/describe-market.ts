import {
  around,
  codeFact,
  firstOf,
  formatTime,
  joined,
  listFact,
  textFact,
  type Description,
  type Subject,
} from './description.ts'

/** Goods on an illicit market. The price is a number now and was a text once. */
export function describeListing({ event, fields }: Subject): Description {
  const price = joined([fields.text('price'), fields.text('currency')], ' ')
  const seller = fields.text('actor.name', 'actor.id', 'actor')
  const title = fields.text('title')
  return {
    typeLabel: 'Market listing',
    headline: null,
    quote: title,
    tail: joined([around('for ', price), around('by ', seller), around('on ', event.source)], ' '),
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
    headline: around('BIN ', firstOf(bins)),
    quote: title,
    tail: joined(
      [
        around('for ', joined([fields.text('price'), fields.text('currency')], ' ')),
        around('on ', event.source),
      ],
      ' ',
    ),
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
    headline: joined([around('BIN ', bin), bank, fields.text('brand')], ', '),
    tail: around('on ', event.source),
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

import {
  around,
  codeFact,
  joined,
  mention,
  textFact,
  timeFact,
  type Description,
  type Subject,
} from './description.ts'

/** An account on a social network that uses our name. */
export function describeSocialMediaAccount(subject: Subject): Description {
  const { event, fields } = subject
  const site = fields.text('site') ?? event.source
  const username = fields.text('username')
  return {
    typeLabel: 'Social media account',
    headline: joined([username ?? mention(subject), around('on ', site)], ' '),
    facts: [
      codeFact('User name', username),
      textFact('Site', site),
      codeFact('Page', fields.text('url')),
    ],
  }
}

/** Every type without a renderer of its own: the keys that many types share, under the type's name. */
export function describeAnything(subject: Subject): Description {
  const { event, fields } = subject
  const title = fields.text('title', 'title_en', 'name', 'username', 'domain', 'hostname', 'digest')
  return {
    typeLabel: typeInWords(event.type),
    headline: joined(
      [title ?? fields.text('url') ?? mention(subject), around('on ', event.source)],
      ' ',
    ),
    facts: [
      textFact('Title', title),
      textFact('Author', fields.text('actor.name', 'actor.id', 'actor')),
      textFact('Source', event.source),
      timeFact('Posted', fields.time('posted_at', 'registered_at', 'last_pushed_at')),
      codeFact('Page', fields.text('url')),
    ],
    content: fields.text('content', 'description', 'about'),
  }
}

/** `source_code_files` → "Source code files". */
function typeInWords(type: string): string {
  const words = type.replaceAll(/[_\s]+/gu, ' ').trim()
  return words === '' ? 'Event' : words.charAt(0).toUpperCase() + words.slice(1)
}

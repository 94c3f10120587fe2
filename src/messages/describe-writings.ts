import {
  around,
  codeFact,
  joined,
  textFact,
  timeFact,
  type Describe,
  type Description,
  type Subject,
} from './description.ts'

/** A message in a chat channel. */
export function describeChatMessage({ event, fields }: Subject): Description {
  const conversation = fields.text('context.conversation_name', 'context.conversation_id')
  const author = authorOf(fields)
  return {
    typeLabel: 'Chat message',
    headline: null,
    quote: null,
    tail: joined(
      [around('by ', author), around('in channel ', conversation), around('on ', event.source)],
      ' ',
    ),
    facts: [
      textFact('Conversation', conversation),
      textFact('Author', author),
      textFact('Platform', event.source),
      timeFact('Posted', fields.time('posted_at')),
      textFact('Forwarded from', forwardedFrom(fields)),
    ],
    content: fields.text('content', 'message'),
  }
}

/** A post or a topic of a forum. */
export function describeForum(typeLabel: string): Describe {
  return ({ event, fields }) => {
    const topic = fields.text('context.topic_title', 'title_en', 'title')
    const author = authorOf(fields)
    return {
      typeLabel,
      headline: null,
      quote: topic,
      tail: joined([around('by ', author), around('on ', event.source)], ' '),
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

/** A post of a blog or news site. It has no title: the description serves. */
export function describeBlogPost({ event, fields }: Subject): Description {
  const title = fields.text('title', 'description')
  return {
    typeLabel: 'Blog post',
    headline: null,
    quote: title,
    tail: around('on ', event.source),
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
  const author = authorOf(fields)
  return {
    typeLabel: 'Paste',
    headline: null,
    quote: title,
    tail: joined([around('by ', author), around('on ', event.source)], ' '),
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

function authorOf(fields: Subject['fields']): string | null {
  return fields.text('actor.name', 'actor.id', 'actor')
}

function forwardedFrom(fields: Subject['fields']): string | null {
  return fields.text(
    'forward_info.forwarded_from',
    'forward_info.forwarded_from_username',
    'forward_info.forwarded_from_chat_id',
  )
}

import {
  around,
  codeFact,
  joined,
  mention,
  textFact,
  timeFact,
  type Describe,
  type Description,
  type Subject,
} from './description.ts'

/** A message in a chat channel. */
export function describeChatMessage(subject: Subject): Description {
  const { event, fields } = subject
  const conversation = fields.text('context.conversation_name', 'context.conversation_id')
  const author = authorOf(fields)
  return {
    typeLabel: 'Chat message',
    headline: joined(
      [
        mention(subject),
        around('by ', author),
        around('in ', conversation),
        around('on ', event.source),
      ],
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
  return (subject) => {
    const { event, fields } = subject
    const topic = fields.text('context.topic_title', 'title_en', 'title')
    const author = authorOf(fields)
    return {
      typeLabel,
      headline: joined(
        [topic ?? mention(subject), around('by ', author), around('on ', event.source)],
        ' ',
      ),
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
export function describeBlogPost(subject: Subject): Description {
  const { event, fields } = subject
  const title = fields.text('title', 'description')
  return {
    typeLabel: 'Blog post',
    headline: joined([title ?? mention(subject), around('on ', event.source)], ' '),
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
export function describePaste(subject: Subject): Description {
  const { event, fields } = subject
  const title = fields.text('title')
  const author = authorOf(fields)
  return {
    typeLabel: 'Paste',
    headline: joined(
      [title ?? mention(subject), around('by ', author), around('on ', event.source)],
      ' ',
    ),
    facts: [
      textFact('Title', title),
      textFact('Author', author),
      textFact('Site', event.source),
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

import { ownFeed } from '../events/own-feed.ts'
import { describeAnything } from './describe-anything.ts'
import { codeFact, textFact, timeFact, type Description, type Subject } from './description.ts'

/** What Tocsin says of itself: trouble that began, or that is over. */
export function describeNotice(subject: Subject): Description {
  if (!isOwn(subject)) return describeForeign(subject)
  const { fields } = subject
  const toDo = fields.text('what_to_do')
  const isCommand = toDo?.startsWith('tocsin ') === true
  return {
    typeLabel: 'Tocsin',
    headline: fields.text('headline') ?? 'trouble of its own',
    facts: [
      timeFact('Since', fields.time('since')),
      timeFact('Over', fields.time('over_at')),
      textFact('Cause', fields.text('cause')),
      isCommand ? codeFact('What to do', toDo) : textFact('What to do', toDo),
    ],
    isOwnWords: true,
  }
}

/** The test event that goes the whole way. */
export function describeCanary(subject: Subject): Description {
  if (!isOwn(subject)) return describeForeign(subject)
  const { fields } = subject
  return {
    typeLabel: 'Canary',
    headline: fields.text('headline') ?? 'test event',
    facts: [
      timeFact('Slot', fields.time('slot')),
      textFact('Meaning', 'TEST: nothing happened; this message shows that the way to here works.'),
    ],
    isOwnWords: true,
  }
}

/** Its words could be made to read as ours, so the headline quotes none of them. */
function describeForeign(subject: Subject): Description {
  return { ...describeAnything(subject), headline: null, quote: '' }
}

/** The service may have types and sources of the same names, but no feed. */
function isOwn({ feed }: Subject): boolean {
  return feed === ownFeed
}

import { listFact, textFact, timeFact, type Description, type Subject } from './description.ts'

/** A threat-flow report that is ready, or what became of its making. */
export function describeReport({ event, fields, id }: Subject): Description {
  const typeLabel = 'Threat report'
  const request = fields.text('request')
  const outcome = fields.text('outcome')
  if (outcome !== null) {
    return {
      typeLabel,
      headline: Object.hasOwn(outcomes, outcome) ? (outcomes[outcome] ?? null) : 'was not made',
      facts: [textFact('Request', request), textFact('What to do', 'order the report again')],
      isOwnWords: true,
    }
  }
  const highlights = event.highlights['highlights'] ?? []
  return {
    typeLabel,
    headline: fields.text('title'),
    facts: [
      textFact('Subtitle', fields.text('subtitle')),
      timeFact('Created', fields.time('created_at')),
      ...highlights.slice(0, shownHighlights).map((text) => textFact('Highlight', text)),
      highlights.length > shownHighlights
        ? textFact('More highlights', String(highlights.length - shownHighlights))
        : null,
      listFact('Related activity', event.highlights['related_activity_uids'] ?? []),
      textFact('Whole report', id === null ? null : `tocsin reports get ${id}`),
    ],
    content: fields.text('summary', 'content'),
    contentLabel: 'Summary',
    isOwnWords: true,
  }
}

const shownHighlights = 5

/** As `feeds/parse-report.ts` names them. */
const outcomes: Record<string, string> = {
  failed: 'could not be made: the service reports an error',
  refused: 'cannot be read: the service refuses its request',
  overdue: 'is overdue: still being made after all the time it was given',
}

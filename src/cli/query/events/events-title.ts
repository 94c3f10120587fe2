import type { EventDetail, ThreatEvent } from '../../../events/threat-event.ts'
import { describerOf } from '../../../messages/families.ts'
import { readFields } from '../../../messages/read-fields.ts'

/** What is special about an event, as its messages say it; null where nothing is known. */
export function eventTitle(event: ThreatEvent, detail: EventDetail | null): string | null {
  const id = event.uid.split('/').slice(2).join('/')
  const { headline } = describerOf(event.type)({
    feed: '',
    event,
    fields: readFields(detail, event.highlights),
    id: id === '' ? null : id,
    secret: null,
  })
  return headline === '' ? null : headline
}

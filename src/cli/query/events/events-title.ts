import type { EventDetail, ThreatEvent } from '../../../events/threat-event.ts'
import { cleanLine } from '../../../messages/clean-text.ts'
import { describeEvent } from '../../../messages/message.ts'
import { headlineOf } from '../../../messages/headline.ts'

/** What an event is about, as its messages say it, but not defanged; null where nothing is known. */
export function eventTitle(event: ThreatEvent, detail: EventDetail | null): string | null {
  const subject = { feed: '', event, detail: detail ?? undefined }
  const title = headlineOf(describeEvent(subject), { maxLength: 150, clean: cleanLine })
  return title === event.uid ? null : title
}

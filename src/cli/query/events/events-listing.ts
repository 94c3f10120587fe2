import type { ThreatEvent } from '../../../events/threat-event.ts'
import { maskHighlights, maskKnown, maskTag } from '../../../feeds/masking.ts'
import { parseItem } from '../../../feeds/parse-item.ts'
import type { WireSearchItem } from '../../../service/wire/events.ts'
import type { Context } from '../../context.ts'
import { harmless } from '../../words.ts'
import { highlightLines, revealedHighlights } from './events-highlights.ts'
import { eventTitle } from './events-title.ts'
import type { Column, Listing } from '../listing.ts'
import { mapTexts, masked } from '../reveal.ts'
import { severityInWords } from '../../../messages/severity-counts.ts'
import { severityStyle } from '../severity-style.ts'
import { shortTime } from '../short-time.ts'

export interface EventRow {
  /** As the service has it, secrets masked unless they are revealed. */
  item: WireSearchItem
  /** Mark tags where they were. */
  received: WireSearchItem['highlights']
  severity: string
  /** null: nothing but the uid is known. */
  title: string | null
}

export function eventRow(
  received: WireSearchItem,
  { reveal, secrets }: { reveal: boolean; secrets: readonly string[] },
): EventRow {
  const item = reveal ? received : maskedItem(received, secrets)
  const parsed = parseItem(received)
  return {
    item,
    received: received.highlights,
    severity: parsed.ok ? parsed.event.severity : (received.metadata.severity ?? 'unknown'),
    title: parsed.ok ? titleOf(parsed.event, secrets) : null,
  }
}

function titleOf(event: ThreatEvent, secrets: readonly string[]): string | null {
  const title = eventTitle(event, null)
  return title === null ? null : maskKnown(secrets)(title)
}

/** The uid stays whole: it is what the event is asked for by. */
function maskedItem(item: WireSearchItem, secrets: readonly string[]): WireSearchItem {
  const known = maskKnown(secrets)
  const { highlights, metadata, tenant_metadata: tenant, ...rest } = item
  const extracts = mapTexts(highlights ?? {}, known) as Record<string, string[]>
  return {
    ...masked(rest, secrets),
    metadata: { ...masked(metadata, secrets), uid: metadata.uid },
    ...(tenant !== undefined && {
      tenant_metadata: tenant && {
        ...masked(tenant, secrets),
        // people write tags such as token:github
        ...(tenant.tags && { tags: tenant.tags.map((tag) => maskTag(known(tag))) }),
      },
    }),
    // any of them may be a line of a dump
    ...(highlights !== undefined && {
      highlights: highlights && maskHighlights(extracts, true, metadata.uid),
    }),
  }
}

export function eventsListing(
  { terminal }: Context,
  { hasIdentifiers, reveal }: { hasIdentifiers: boolean; reveal: boolean },
): Listing<EventRow> {
  const identifiers: Column<EventRow> = {
    title: 'IDENTIFIERS',
    width: 24,
    text: ({ item }) => (item.identifiers ?? []).map(({ name }) => name).join(', '),
  }
  return {
    columns: [
      {
        title: 'SEVERITY',
        width: 8,
        text: ({ severity }) => severityInWords(severity),
        style: ({ severity }) => severityStyle(severity),
      },
      {
        title: 'CREATED (UTC)',
        width: 16,
        text: ({ item }) => shortTime(item.metadata.estimated_created_at),
      },
      { title: 'TYPE', width: 20, text: ({ item }) => item.metadata.type ?? '' },
      ...(hasIdentifiers ? [identifiers] : []),
      { title: 'EVENT', width: 80, text: ({ item, title }) => title ?? item.metadata.uid },
    ],
    below: ({ item, received, title }) => [
      ...(reveal
        ? revealedHighlights(item.highlights)
        : highlightLines(terminal, received, item.highlights)),
      ...(title === null ? [] : [terminal.paint('dim', harmless(item.metadata.uid, 600))]),
    ],
    json: ({ item }) => item,
    csv: [
      'metadata.uid',
      'metadata.type',
      'metadata.severity',
      'metadata.estimated_created_at',
      'metadata.matched_at',
      'metadata.flare_url',
      'tenant_metadata.severity.original',
      'tenant_metadata.severity.override',
      'tenant_metadata.tags',
      'tenant_metadata.notes',
      'tenant_metadata.ignored_at',
      'tenant_metadata.remediated_at',
      'identifiers',
      'highlights',
    ],
  }
}

import type { ThreatEvent } from '../../src/event.ts'

/** A plausible event; say only what the test is about. */
export function aThreatEvent(overrides: Partial<ThreatEvent> = {}): ThreatEvent {
  return {
    uid: 'stealer_log/stealer_logs_live/12345',
    kind: 'event',
    type: 'stealer_log',
    source: 'stealer_logs_live',
    severity: 'high',
    originalSeverity: null,
    createdAtMs: Date.UTC(2026, 10, 1, 12, 0, 0),
    matchedAtMs: Date.UTC(2026, 10, 1, 12, 1, 0),
    ignoredAtMs: null,
    remediatedAtMs: null,
    url: 'https://app.example.com/#/uid?uid=stealer_log/stealer_logs_live/12345',
    tags: [],
    notes: null,
    identifiers: [{ id: 77, name: 'example.com' }],
    highlights: { 'victim_information.username': ['alice'] },
    ...overrides,
  }
}

/** The invented event of test messages. */
import { blankEvent, type EventDetail, type ThreatEvent } from '../event.ts'

/** An invented event with its detail. */
export interface Sample {
  event: ThreatEvent
  detail: EventDetail
}

/** As if matched at `atMs`; it says TEST in its uid, tags and notes. */
export function sampleEvent(atMs: number): Sample {
  return {
    event: {
      ...blankEvent('stealer_log'),
      uid: 'stealer_log/tocsin-test/TEST',
      source: 'tocsin-test',
      severity: 'critical',
      createdAtMs: atMs,
      matchedAtMs: atMs,
      tags: ['TEST'],
      notes: 'TEST: an invented event.',
      identifiers: [{ id: 1, name: 'TEST example.com' }],
    },
    detail: {
      victim_information: {
        country_code: 'CH',
        os: 'Windows 11 Pro',
        username: 'test.user',
        hardware: ['Computer Name: TEST-DESKTOP'],
      },
      malware_information: { malware_family: 'TestStealer', infected_at: '2026-01-05T08:30:00' },
    },
  }
}

import { describe, expect, test } from 'vitest'
import { parseCookie } from '../../../../src/feeds/types/cookies.ts'
import { aCookieFeed } from '../../../support/feeds.ts'

const feed = aCookieFeed()
const uuid = '44672461-aca4-4b3b-b192-6bd5429c4c6d'
const value = 'sess-4c1f9a77e0'
const cookie = {
  uuid,
  domain: 'vpn.example.com',
  expires_at: '2026-12-18T00:00:00+00:00',
  imported_at: '2026-11-01T00:00:00+00:00',
  name: 'session',
  path: '/',
  event_uid: 'stealer_log/stealer_logs_live/12345',
  value,
}

function eventOf(given: Record<string, unknown> = {}) {
  const parsed = parseCookie({ ...cookie, ...given }, feed)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.event
}

describe('a cookie', () => {
  test('is an event of its own kind, with its value for sealing alone', () => {
    const parsed = parseCookie(cookie, feed)
    expect(parsed).toMatchObject({
      ok: true,
      secret: value,
      event: {
        uid: `cookie/${uuid}`,
        kind: 'credential',
        type: 'cookie',
        source: 'stealer_logs_live',
        severity: 'high',
        createdAtMs: Date.UTC(2026, 10, 1),
        highlights: {
          name: ['session'],
          domain: ['vpn.example.com'],
          expires_at: ['2026-12-18T00:00:00.000Z'],
          event_uid: ['stealer_log/stealer_logs_live/12345'],
        },
      },
    })
    const { ok: _ok, ...rest } = parsed
    expect(JSON.stringify({ ...rest, secret: null })).not.toContain(value)
  })

  test.each([
    ['2026-11-01T00:00:00Z', 'info', ['expired']],
    ['2026-11-01T00:00:01Z', 'high', undefined],
    [1_577_836_800, 'high', undefined], // no documented form
  ])('that was imported as 2026-11 began and ends at %j is %s', (ends, severity, state) => {
    const { highlights, ...event } = eventOf({ expires_at: ends })
    expect([event.severity, highlights['state']]).toEqual([severity, state])
  })

  test('whose value stands in other fields, too, shows it nowhere', () => {
    const event = eventOf({ name: `x=${value}`, path: `/${value}`, event_uid: `a/b/${value}` })
    expect(JSON.stringify(event)).not.toContain(value)
  })

  test.each([
    ['no value', { value: null }, { secret: null }],
    ['a value too long to show', { value: 'v'.repeat(1_001) }, { secret: null }],
    ['no expiry', { expires_at: null }, { event: { severity: 'high' } }],
  ])('with %s is taken in', (_what, given, expected) => {
    expect(parseCookie({ ...cookie, ...given }, feed)).toMatchObject({ ok: true, ...expected })
  })

  test('names what could not be read of it', () => {
    const odd = { value: ['a', 'b'], expires_at: 'soon', imported_at: {}, name: {} }
    expect(eventOf(odd)).toMatchObject({ unread: ['expires_at', 'imported_at', 'name', 'value'] })
  })

  test('without an id is none', () => {
    expect(parseCookie({ ...cookie, uuid: 'x' }, feed)).toEqual({
      ok: false,
      uid: null,
      problem: 'uuid: it is no UUID',
    })
  })
})

/**
 * Names and digests under which version 0.4.0 stored things, computed by its own code: whatever is looked
 * up again must come out the same, or an upgrade loses it. They are literal on purpose.
 */
import { describe, expect, test } from 'vitest'
import { createAddressHasher } from '../../../src/daemon/sinks.ts'
import { polledFeeds } from '../../../src/daemon/polled-feeds.ts'
import { parseConfig } from '../../../src/config/load.ts'
import {
  fallbackGroup,
  mutedGroup,
  blockedGroup,
  movedGroup,
  placeItem,
  returnedGroup,
  type GroupingSink,
} from '../../../src/grouping/placement.ts'
import { deriveMessageId } from '../../../src/grouping/freeze.ts'
import { sortPage } from '../../../src/feeds/page.ts'
import { scanFingerprint } from '../../../src/feeds/scan.ts'
import { createFingerprints, itemId } from '../../../src/store/account-ledger.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { inhibitRulesConfig, sourceKeys } from '../../../src/routing/inhibition.ts'
import { createSecretBox } from '../../../src/lib/sealed-secret.ts'
import { secretFromText } from '../../../src/lib/secret.ts'
import { createOrganizations } from '../../../src/upstream/organizations.ts'
import { createAccountKey } from '../../../src/upstream/tokens.ts'
import { recipientHash } from '../../../src/sinks/destinations.ts'
import { feedCredential, searchCredential, searchItem } from '../../fixtures/documented-items.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aRoutableEvent } from '../../support/routing.ts'

const uid = 'stealer_log/stealer_logs_live/12345'
const digests = createFingerprints(Buffer.alloc(32, 7))
const box = createSecretBox(() => 'fw_the-key')

const yaml = `
accounts: {main: {base_url: https://api.example.com/, api_key: fw_key, tenant_id: 42, organization_id: 7}}
feeds:
  brand: {type: events, identifier_group: 1042, filters: {severity: [high, critical]}}
  hunting: {type: event_search, query: {type: keyword, keyword: acme}}
  archive: {type: legacy_search, query: acme}
  logins: {type: credentials, identifier: 77, severity: high}
  leaks: {type: credential_search, query: {type: domain, fqdn: example.com}, severity: high}
sinks: {soc: {type: slack, url: 'https://hooks.example.com/services/T1/B2/s3cr3t'}}
route: {sinks: [soc]}
`
const { config } = parseConfig(yaml, { file: 'tocsin.yaml', env: {} })
const feeds = new Map(polledFeeds(config).map((feed) => [feed.name, feed]))

describe('what is known stays known:', () => {
  test('an event that a feed showed is not new', () => {
    expect(digests.seen('brand', uid)).toEqual({ m: '-4899745668260842771', b: 1029041779 })
  })

  test('an event that a destination has is not sent to it again', () => {
    const mark = digests.claim(uid, 'high', 'oncall:ab12')
    expect(mark).toEqual({ m: '139827876901749850', b: 37223689 })
  })

  test('an event from before the feed began is not told', () => {
    expect(digests.baseline('brand', uid)).toEqual({ m: '-5792109929074380697', b: 2917910454 })
  })

  test('an item that could not be read is not quarantined again', () => {
    const mark = digests.malformed('brand', '{"a":1}')
    expect(mark).toEqual({ m: '8150806433346247247', b: 3707959531 })
  })

  test('an event finds its record, so that its story and its items go on', () => {
    expect(digests.recordId(uid)).toBe('251697b27fb736361bd21526')
    expect(createKeys('tocsin').account('main', 'rec', 'ab')).toBe('{tocsin:main}:rec:ab')
  })

  test('what all accounts share, and what BullMQ has, is found', () => {
    const keys = createKeys('tocsin')
    expect(keys.shared('circuit', 'soc')).toBe('{tocsin}:circuit:soc')
    expect(keys.queuePrefix).toBe('{tocsin}')
  })
})

test.each([
  ['brand', searchItem, ['listing/sample_market/4711', undefined]],
  ['logins', feedCredential, ['credential/406285232303', '64935f6ddeb69a3b59cba6a7']],
  ['leaks', searchCredential, ['credential/406285232303', '64935f6ddeb69a3b59cba6a7']],
  [
    'leaks',
    { ...searchCredential, id: 5, identity_name: 'Ann@ACME.example ' },
    ['credential/5', '64935f6ddeb69a3b59cba6a7'],
  ],
  ['brand', { metadata: { severity: 'high' }, odd: [1, 'ü'] }, [null, '674db229bcd14054b32898c3']],
])(
  'an item of the feed %s has the uid, and the likeness, by which it was taken in',
  (name, raw, expected) => {
    const { events, malformed } = sortPage([raw], {
      feed: feeds.get(name)!,
      startBoundMs: 0,
      readsBaseline: false,
      plan: () => ({ decisions: [], items: [] }),
      pairDigest: (parts) => box.digest(parts),
      sealSecret: () => undefined,
    })
    const named = [
      ...events.map(({ event, pair }) => [event.uid, pair?.id]),
      ...malformed.map((bad) => [bad.uid, bad.identity]),
    ]
    expect(named).toEqual([expected])
  },
)

test.each([
  ['brand', '02977b6ec7b9ea53'],
  ['hunting', '387e984ff375ddbb'],
  ['archive', '902f2cfadcf211eb'],
  ['logins', '0cfc159332473de9'],
  ['leaks', '64431e7bf1df6d90'],
])('the feed %s goes on at its cursor: its request has the same fingerprint', (name, print) => {
  expect(scanFingerprint(feeds.get(name)!, 1_761_998_400_000)).toBe(print)
})

describe('what waits, and what is sent, keeps its id:', () => {
  const people: GroupingSink = { name: 'soc', isForPeople: true, destinations: [{ id: 'soc' }] }
  const schedule = { next: () => 5, previous: () => 1 } as never
  const digest = { schedule, timeZone: 'UTC', immediate: null, sendsEmpty: false, maxItems: 5 }
  const item = { destination: 'soc', severity: 'high', feed: 'brand', isBacklog: false }
  const grouping = { route: 'root', waitMs: 10_000, labels: { type: 'paste', feed: 'brand' } }
  const moved = { destination: 'soc', severity: 'high', from: 'old' }
  const placed = (sink: GroupingSink, isBacklog: boolean) =>
    placeItem(sink, { ...item, isBacklog }, grouping, 0).group

  test.each([
    ['a group', placed(people, false), 'de42ab95596cb9a045221b9b'],
    ["a first poll's summary", placed(people, true), '4a74fe5e9ac704bdd8896ed7'],
    ['a digest', placed({ ...people, digest }, false), '378a20bd744a5a05281f65f2'],
    ['what a mute holds', mutedGroup('soc', 'night', 9), 'fb42521cf1dfa686d401de3e'],
    ['what was moved', movedGroup(people, moved, 0), '9de3dd382af928f159eef1fa'],
    ['what a fallback gets', fallbackGroup(people, moved), '2fa82aabbe7fe08e3f420795'],
    ['what a sink that was down gets', blockedGroup('soc'), 'a3b2bfde966ed82a4354c7c2'],
    ['what a sink that was gone gets', returnedGroup('soc'), 'ee363d65b8fb37d20b41a03d'],
  ])('%s comes as one message, not as two', (_what, place, id) => {
    expect(place?.id).toBe(id)
  })

  test('a delivery that is tried again is recognised by its receiver', () => {
    const id = itemId('main', uid, 'high', 'oncall:ab12')
    expect(id).toBe('e4ce53ac18ec508cde8ccda52291cf9bd')
  })

  test('a message that was cut off while it was sealed is finished under its own id', () => {
    const turn = { id: 'group-id', openedAtMs: 1_761_998_400_000, sequence: 3 }
    const id = deriveMessageId({ ...turn, ledger: { account: 'main' } as never })
    expect(id).toBe('850fefc0989ef959d8c6e84f7d5df093abea8f4c')
  })

  test('a recipient of mail is the same destination', () => {
    expect(recipientHash('Ann@Acme.example')).toBe('b759382850d65342')
  })
})

describe('what replicas of both versions share for a while is the same:', () => {
  test('the pace at which an organization may be asked', () => {
    const organizations = createOrganizations(config.accounts)
    expect(organizations.laneFor('main', 'search')).toEqual({
      tier: 'search',
      organization: '137b9e5e4e13211c-7',
      baseUrl: '137b9e5e4e13211c',
    })
  })

  test('the token of an API key, and the pause after it was refused', () => {
    const apiKey = secretFromText('fw_key')
    const baseUrl = 'https://api.example.com'
    const credentials = createAccountKey({ apiKey, tenantId: 42, baseUrl })()
    expect(credentials.fingerprint).toBe('b1ebf407fccb9b82')
    const sealed = 's1.rVLchl5jMb26NPXoFDtYBLcsW87y-ikXq-Q-pAh2vd5_datCrR6VRoFF'
    expect(credentials.open(sealed)).toBe('a-token')
  })

  test('the address of a sink that is gone: it is not tried again', () => {
    expect(createAddressHasher(config)('soc')).toBe('13b47cc819574b2bf567043f')
  })

  test('the event that keeps others back', () => {
    const rules = inhibitRulesConfig.parse([
      {
        name: 'leak-first',
        source_matchers: ['type="stealer_log"'],
        target_matchers: ['type="paste"'],
        equal: ['identifier'],
        window: '1h',
      },
    ])
    const keys = sourceKeys(rules, aRoutableEvent({ event: aThreatEvent() }))
    expect(keys.map(({ key }) => key)).toEqual(['7dc15534aeb7c4696d933fa9a547e512'])
  })
})

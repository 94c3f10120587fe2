import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../src/config/load.ts'
import { createDelivery, type OpenMessage } from '../../../src/delivery/send/attempt.ts'
import { ownFeed } from '../../../src/event.ts'
import { describedTypes } from '../../../src/messages/types/families.ts'
import { createGuidanceFinder, type Guidance } from '../../../src/messages/guidance.ts'
import { builtInNextSteps } from '../../../src/messages/types/next-steps.ts'
import { createRouter } from '../../../src/routing/router.ts'
import { mailContent } from '../../../src/sinks/email/email-sink.ts'
import type { Delivery } from '../../../src/sinks/sink.ts'
import { previewSlack } from '../../../src/sinks/slack/slack-message.ts'
import type { AccountLedger } from '../../../src/store/account-ledger.ts'
import { aThreatEvent } from '../../support/events.ts'
import { aMember } from '../../support/deliveries.ts'
import { bareMembers } from '../../support/delivery.ts'
import { aRehearsedSink } from '../../support/rehearsed-sink.ts'
import { summarised } from '../../support/summaries.ts'
import { runs } from '../../support/runs.ts'
import { anyMember } from '../sinks/any-member.ts'

const file = `
accounts: { main: { base_url: https://api.example.com, api_key: key } }
feeds: { brand: { type: events, identifier_group: 7 } }
sinks: { soc: { type: slack, url: https://hooks.slack.com/services/T0/B0/x } }
messages:
  next_steps: { stealer_log: Call the help desk., paste: '', stealer_lgo: typo }
  runbook_urls: { stealer_log: http://wiki.example.com/stealer }
route:
  sinks: [soc]
  note: Ask the duty officer.
  mention: [here]
  routes:
    - { name: urgent, matchers: ['severity=critical'], mention: [U012AB3CD, S012AB3CD], runbook_url: https://wiki.example.com/urgent }
    - { name: quiet, matchers: ['severity=low'], note: '', mention: [] }
    - { name: trial, matchers: ['severity=high'], mode: shadow, note: unseen }
`
const { config, warnings } = parseConfig(file, { file: 'tocsin.yaml', env: {} })
const router = createRouter(config.route)
const find = createGuidanceFinder(config.messages, (name) => router.node(name))

function guidanceFor(routes: string[], type = 'stealer_log'): Guidance | undefined {
  return find({ feed: 'brand', routes, event: { type, uid: `${type}/x/1` } })
}

describe('what the configuration says to the reader of an event', () => {
  test('comes from its route, else from the route above', () => {
    expect(guidanceFor(['urgent'])).toEqual({
      notes: ['Ask the duty officer.'],
      runbookUrls: ['https://wiki.example.com/urgent', 'http://wiki.example.com/stealer'],
      mentions: ['U012AB3CD', 'S012AB3CD'],
      nextStep: 'Call the help desk.',
    })
    expect(guidanceFor(['quiet'])).toMatchObject({ notes: [], mentions: [] })
  })

  test('is that of all its routes, each once and in order', () => {
    expect(guidanceFor(['root', 'urgent'])).toMatchObject({
      notes: ['Ask the duty officer.'],
      mentions: ['here', 'U012AB3CD', 'S012AB3CD'],
    })
  })

  test('is nothing for a route that left the file, and for one in shadow', () => {
    expect(guidanceFor(['gone', 'trial'])).toMatchObject({ notes: [], mentions: [] })
  })

  test('has a next step for each family, which the file replaces or removes', () => {
    expect(guidanceFor([], 'stealer_log')?.nextStep).toBe('Call the help desk.')
    expect(guidanceFor([], 'bot')?.nextStep).toMatch(/^Find the machine/u)
    expect(guidanceFor([], 'paste')?.nextStep).toBeNull()
    expect(guidanceFor([], 'constructor')?.nextStep).toBeNull()
    const unknown = [...builtInNextSteps.keys()].filter((type) => !describedTypes.includes(type))
    expect(unknown).toEqual([])
    for (const step of builtInNextSteps.values()) expect(step.length).toBeLessThan(130)
  })

  test('pings nobody for a test of the way, nor for trouble that is over', () => {
    const own = (type: string, uid: string): Guidance | undefined =>
      find({ feed: ownFeed, routes: ['urgent'], event: { type, uid } })
    expect(own('canary', 'tocsin-canary')).toBeUndefined()
    expect(own('notice', 'feed-begin')?.mentions).toHaveLength(2)
    expect(own('notice', 'feed-end')?.mentions).toEqual([])
  })

  test('warns of a type that nobody knows', () => {
    expect(warnings.map(({ path, problem, remedy }) => `${path}: ${problem}; ${remedy}`)).toContain(
      'messages.next_steps.stealer_lgo: no event type that is known; did you mean "stealer_log"?',
    )
  })
})

test('a delivery looks it up when it is made, so that nothing of it is stored', async () => {
  const { event } = aMember()
  const member = {
    ...aMember(),
    recordId: 'r',
    uid: event.uid,
    severity: 'high',
    closed: undefined,
  }
  const message = {
    ref: 'i:r:0:soc',
    kind: 'item',
    destination: 'soc',
    attempt: 1,
    mayBeRepeat: false,
    members: [{ ...member, payload: { event, fetchedAtMs: 1 } }],
  } as unknown as OpenMessage
  const sink = aRehearsedSink('soc')
  const made = await createDelivery(
    { ledger: { account: 'main' } as AccountLedger, sink },
    message,
    {
      ...bareMembers,
      findLedger: () => undefined,
      namesAccounts: true,
      findTenant: (account) => (account === 'main' ? 17 : undefined),
      findGuidance: find,
    },
  )
  expect(made).toMatchObject({
    members: [{ namesAccount: true, tenantId: 17, guidance: guidanceFor(['urgent']) }],
  })
})

const guidance: Guidance = {
  notes: ['Ask <b>Joe</b> & <!channel> at https://wiki.example.com'],
  runbookUrls: ['https://wiki.example.com/run?a=1&b=2', 'http://wiki.example.com/"x'],
  mentions: ['U012AB3CD', 'S012AB3CD', 'here'],
  nextStep: 'Reset the passwords.',
}
const pings = '<@U012AB3CD> <!subteam^S012AB3CD> <!here>'
const guided = aMember({ guidance })

function delivery(more: Partial<Delivery> = {}): Delivery {
  const destination = { id: 'soc', label: 'soc' }
  const members = [guided]
  return { id: 'd1', destination, members, attempt: 1, mayBeRepeat: false, ...more }
}

/** The objects of Slack that interpret what they say. */
function mrkdwnTexts(one: Delivery): unknown[] {
  const found: unknown[] = []
  JSON.parse(JSON.stringify(previewSlack(one).inBlocks.blocks), (_key, value: unknown) => {
    if (typeof value === 'object' && value !== null && 'type' in value && value.type === 'mrkdwn')
      found.push((value as unknown as { text: string }).text)
    return value
  })
  return found
}

describe('messages', () => {
  test('whatever a feed says, nothing of it pings', () => {
    fc.assert(
      fc.property(anyMember, (member) => {
        const hostile = delivery({ members: [{ ...member, guidance }] })
        expect(mrkdwnTexts(hostile)).toEqual([pings])
        const lines = (previewSlack(hostile).plainText.text ?? '').split('\n')
        expect(lines[1]).toBe(pings)
        expect(lines.toSpliced(1, 1).join('\n')).not.toMatch(/[<>]/u)
        expect(mrkdwnTexts(delivery({ members: [member] }))).toEqual([])
      }),
      { numRuns: runs({ short: 100, long: 1000 }) },
    )
  })

  const event = aThreatEvent({ type: 'cookie' })
  const others = [guided, aMember({ event, guidance: { ...guidance, nextStep: 'Isolate it.' } })]

  test('by mail escape the type that a next step of the configuration is for', () => {
    const odd = aMember({ event: aThreatEvent({ type: 'a<b>&c' }), guidance })
    const { html } = mailContent(delivery(summarised([odd, ...others])), 'oncall')
    expect(html).toContain('&lt;b&gt;&amp;c')
    expect(html).not.toMatch(/<b>&amp;c|<b>&c/u)
  })

  test.each(['backlog', 'held'] as const)('of a %s say it, but ping nobody', (kind) => {
    const one = delivery(summarised(others, { kind }))
    expect(mrkdwnTexts(one)).toEqual([])
    expect(JSON.stringify(previewSlack(one))).toContain('Isolate it.')
  })
})

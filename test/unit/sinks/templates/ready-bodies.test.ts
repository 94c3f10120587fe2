/** The bodies of config/templates, against what the receivers document of their requests. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { renderMessage } from '../../../../src/messages/message.ts'
import type { TemplateFailure } from '../../../../src/sinks/templates/template-config.ts'
import { createBodyRenderer } from '../../../../src/sinks/templates/templates.ts'
import type { DeliveryMember } from '../../../../src/sinks/sink.ts'
import { allHostileWords } from '../../../security/hostile-words.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { runs } from '../../../support/runs.ts'
import { anyMember } from '../any-member.ts'

const folder = join(import.meta.dirname, '../../../../config/templates')

function renderReady(file: string, member: DeliveryMember): unknown {
  const failures: TemplateFailure[] = []
  const render = createBodyRenderer(
    { name: 'siem', templates: { webhook_body: readFileSync(join(folder, file), 'utf8') } },
    { onTemplateFailure: (failure) => failures.push(failure) },
  )
  const destination = { id: 'siem', label: 'siem' }
  const body = render({
    id: 'd1',
    destination,
    members: [member],
    attempt: 1,
    mayBeRepeat: false,
  })
  expect(failures).toEqual([])
  return JSON.parse(body ?? '')
}

const hostile = `x", "severity": 1, "y": "{{ 7 | times: 7 }} {% if %} ${allHostileWords} ![a](https://evil.example)`
const members = {
  usual: aMember(),
  'without anything': aMember({
    link: null,
    labels: {},
    event: aThreatEvent({
      createdAtMs: null,
      matchedAtMs: null,
      identifiers: [],
      tags: [],
      notes: null,
      url: null,
    }),
  }),
  hostile: aMember({
    event: aThreatEvent({
      type: hostile,
      source: hostile,
      notes: hostile,
      tags: [hostile],
      identifiers: [{ id: 1, name: hostile }],
    }),
    detail: { source: { name: hostile }, identity_name: hostile },
  }),
  'of astral characters': aMember({
    feed: '\u{1F525}'.repeat(100),
    event: aThreatEvent({
      type: '\u{1F525}'.repeat(400),
      source: '\u{1F525}'.repeat(400),
      tags: ['\u{1F525}'.repeat(400)],
      identifiers: [{ id: 1, name: '\u{1F525}'.repeat(400) }],
      highlights: { content: ['\u{1F525}'.repeat(400)] },
    }),
  }),
  'of great length': aMember({
    feed: 'f'.repeat(200),
    link: `https://app.example.com/#/uid?uid=${'u'.repeat(600)}`,
    event: aThreatEvent({ type: 't'.repeat(400) }),
  }),
}

/** The receivers count UTF-16 units, where zod counts code points. */
function textUpTo(most: number): z.ZodString {
  return z
    .string()
    .min(1)
    .refine(({ length }) => length <= most, `more than ${most} units`)
}

/** "Format events for HTTP Event Collector": metadata keys, and the event as an object. */
const hecEvent = z.strictObject({
  time: z.int().min(1_000_000_000).max(9_999_999_999),
  host: z.string().min(1),
  source: z.string().min(1),
  sourcetype: z.string().min(1),
  event: z.record(z.string(), z.unknown()),
})

/** Jira's REST API 3, "Create issue": the description is an Atlassian document, whose texts are not empty. */
const adfText = z.strictObject({
  type: z.literal('text'),
  text: z.string().min(1),
  marks: z
    .tuple([
      z.strictObject({
        type: z.literal('link'),
        attrs: z.strictObject({ href: z.url({ hostname: /^app\.example\.com$/ }) }),
      }),
    ])
    .optional(),
})
const jiraIssue = z.strictObject({
  fields: z.strictObject({
    project: z.strictObject({ key: z.string() }),
    issuetype: z.strictObject({ name: z.string() }),
    summary: textUpTo(255).regex(/^[^\r\n]*$/),
    labels: z.array(z.string().regex(/^\S+$/)),
    description: z.strictObject({
      type: z.literal('doc'),
      version: z.literal(1),
      content: z
        .array(z.strictObject({ type: z.literal('paragraph'), content: z.array(adfText).min(1) }))
        .min(1),
    }),
  }),
})

/** `InputCreateAlert` in the OpenAPI document of TheHive 5, from which StrangeBeeCorp/thehive4go is made. */
const hiveAlert = z.strictObject({
  type: textUpTo(32),
  source: textUpTo(32),
  sourceRef: textUpTo(128),
  title: textUpTo(512),
  description: textUpTo(1_048_576),
  severity: z.int().min(1).max(4),
  externalLink: z.url().max(512).optional(),
  tags: z
    .array(textUpTo(128))
    .refine((tags) => new Set(tags).size === tags.length, 'each tag once'),
})

const rules = {
  'splunk-hec.liquid': hecEvent,
  'jira-issue.liquid': jiraIssue,
  'thehive-alert.liquid': hiveAlert,
}

const cases = Object.entries(rules).flatMap(([file, schema]) =>
  Object.entries(members).map(([kind, member]) => ({ file, kind, schema, member })),
)

test.each(cases)('$file keeps the rules of its receiver: $kind', ({ file, schema, member }) => {
  expect(schema.safeParse(renderReady(file, member)).error).toBeUndefined()
})

test('a summary that is too long for Jira ends in an ellipsis, and one that fits is whole', () => {
  // takes two of the UTF-16 units that Jira counts, and one of the code points of filters
  const astral = '\u{1F525}'.repeat(400)
  const odd = aMember({ event: aThreatEvent({ type: astral, source: astral, severity: astral }) })
  for (const [member, isCut] of [
    [odd, true],
    [members.usual, false],
  ] as const) {
    const { fields } = renderReady('jira-issue.liquid', member) as { fields: { summary: string } }
    expect(fields.summary.length).toBeLessThanOrEqual(255)
    expect(fields.summary.endsWith('...')).toBe(isCut)
    const whole = renderMessage(member, { id: 'abc' }).notification
    expect(fields.summary === whole).toBe(!isCut)
  }
})

test('severities of TheHive go from 1 to 4, and one that is not known is 4', () => {
  const words = ['info', 'low', 'medium', 'high', 'critical', 'unheard-of']
  const found = words.map((severity) => {
    const alert = renderReady(
      'thehive-alert.liquid',
      aMember({ event: aThreatEvent({ severity }) }),
    ) as { severity: number }
    return alert.severity
  })
  expect(found).toEqual([1, 1, 2, 3, 4, 4])
})

test("no word of a feed is Markdown in TheHive's description", () => {
  const alert = renderReady('thehive-alert.liquid', members.hostile) as { description: string }
  const lines = alert.description.split('\n').filter((line) => line !== '')
  expect(lines.length).toBeGreaterThan(1)
  expect(lines.filter((line) => !line.startsWith('    '))).toEqual([])
})

test('the time of Splunk is that of the match, in seconds', () => {
  const event = aThreatEvent({ matchedAtMs: Date.UTC(2026, 10, 1) })
  const found = renderReady('splunk-hec.liquid', aMember({ event }))
  expect(found).toMatchObject({ time: Date.UTC(2026, 10, 1) / 1000, source: 'brand' })
})

/** Its time is that of the event, whatever century that says. */
const anyTimeRules = { ...rules, 'splunk-hec.liquid': hecEvent.extend({ time: z.int() }) }

test.each(Object.entries(anyTimeRules))('%s keeps them for any event', (file, schema) => {
  fc.assert(
    fc.property(anyMember, (member) => {
      expect(schema.safeParse(renderReady(file, member)).error).toBeUndefined()
    }),
    { numRuns: runs({ short: 60, long: 2000 }) },
  )
})

/** docs/templates.md says what holds: variables, tags, filters and limits. */
import { expect, test } from 'vitest'
import { fullSample } from '../../../../src/sinks/templates/event-fields.ts'
import {
  parseTemplate,
  templateFilters,
  templateLimits,
  templateTags,
} from '../../../../src/sinks/templates/template-engine.ts'
import { readPage } from '../../../docs/pages.ts'
import { aMember } from '../../../support/deliveries.ts'
import { aThreatEvent } from '../../../support/events.ts'
import { showTemplated } from '../../../support/templated-sinks.ts'

const page = readPage('docs/templates.md')

const rows = [...page.matchAll(/^\| `(\w+)`( \?)? \| ([a-z ]+) \| `(.*)` \|$/gm)].map(
  ([, name = '', mark, type, example = '']) => ({
    name,
    isOptional: mark !== undefined,
    type,
    example,
  }),
)

test('every variable is listed, with an example of its type', () => {
  expect(rows.map(({ name }) => name)).toEqual(Object.keys(fullSample))
  const shown = rows.map(({ name, example }) => [name, JSON.parse(example)] as const)
  expect(Object.fromEntries(shown)).toEqual(fullSample)
  expect(rows.map(({ name, type }) => [name, type])).toEqual(
    shown.map(([name, value]) => [name, typeName(value)]),
  )
})

function typeName(value: unknown): string {
  if (Array.isArray(value))
    return typeof value[0] === 'string' ? 'list of texts' : 'list of objects'
  if (typeof value !== 'string') return typeof value
  return /^\d{4}-\d\d-\d\dT/.test(value) ? 'time' : 'text'
}

test('a variable without a mark is there for every event', async () => {
  const bare = aThreatEvent({
    createdAtMs: null,
    matchedAtMs: null,
    identifiers: [],
    tags: [],
    notes: null,
    url: null,
  })
  const names = rows.filter(({ isOptional }) => !isOptional).map(({ name }) => name)
  const webhook_body = `{${names.map((name) => `"${name}": {{ ${name} }}`).join(', ')}}`
  const members = [aMember({ event: bare, link: null })]
  const { preview, failures } = await showTemplated('webhook', { webhook_body }, { members })
  expect(failures).toEqual([])
  expect(Object.keys(preview.body as object)).toEqual(names)
  expect(Object.values(preview.body as object)).not.toContain(null)
})

test('tags and filters are those that there are', () => {
  const [, tags = ''] = /^Tags: (.*?)\. /m.exec(page) ?? []
  const [, filters = ''] = /^Filters: (.*?)\.$/m.exec(page) ?? []
  const words = (text: string): string[] => text.split(', ').map((word) => word.replaceAll('`', ''))
  expect(words(tags)).toEqual(templateTags)
  expect(words(filters)).toEqual(templateFilters)
})

test('limits are those that there are', () => {
  const { maxMs, maxMemory, maxOutput } = templateLimits
  for (const limit of [
    `${maxMs} ms`,
    `${maxMemory.toLocaleString('en-US')} characters and list entries`,
    `writes more than ${maxOutput / 1024} KiB`,
  ]) {
    expect(page).toContain(limit)
  }
})

test('the library knows each conversion of a date that is listed', () => {
  const [, conversions = ''] = /of `strftime`: `([^`]+)`/.exec(page) ?? []
  const template = parseTemplate(conversions.replaceAll(/%\S+/g, '[{{ 0 | date: "$&" }}]'), {
    kind: 'lines',
  })
  expect(conversions.split(' ').length).toBeGreaterThan(20)
  expect(template.render({}).replace('[%]', '')).not.toContain('%')
})

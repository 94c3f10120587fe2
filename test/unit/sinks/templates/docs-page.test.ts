/** docs/templates.md says what holds: variables, tags, filters and limits. */
import { expect, test } from 'vitest'
import { fullSample } from '../../../../src/sinks/template-config.ts'
import { timeConversions } from '../../../../src/lib/strftime.ts'
import { templateLimits } from '../../../../src/sinks/template-bounds.ts'
import { templateFilters, templateTags } from '../../../../src/sinks/template-engine.ts'
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

test('conversions of dates and limits are those that there are', () => {
  const [, conversions = ''] = /of `strftime`: `([^`]+)`/.exec(page) ?? []
  const letters = conversions.split(' ').map((one) => one.slice(1))
  expect(letters.toSorted()).toEqual(timeConversions.toSorted())
  const { maxSteps, maxWork, maxCpuMs, maxMemory, maxSize, maxOutput, maxArgument } = templateLimits
  const say = (count: number): string => count.toLocaleString('en-US')
  for (const limit of [
    `${say(maxSteps)} steps`,
    `${say(maxWork)} characters read and made`,
    `${maxCpuMs} ms of the processor`,
    `${say(maxMemory)} characters and list entries`,
    `one value of more than ${maxSize / 1024} KiB`,
    `writes more than ${maxOutput / 1024} KiB`,
    `an argument of more than ${maxArgument} characters`,
  ]) {
    expect(page).toContain(limit)
  }
})

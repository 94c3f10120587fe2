/** Help and tables on a terminal of 80 columns, and whole lines with `--wide`. */
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { createPrinter, type Listing } from '../../../src/cli/api/listing.ts'
import type { Context } from '../../../src/cli/context.ts'
import { runProgram } from '../../../src/cli/program.ts'
import { measureWidth } from '../../../src/lib/text-width.ts'
import { optionsByCommand } from '../../docs/commands.ts'
import { redisForTests } from '../../support/ledger.ts'
import { aServiceScene } from './service-scene.ts'
import { aSocScene } from './soc-scene.ts'

const tests = redisForTests()
const columns = 80

async function linesOf(...args: string[]): Promise<string[]> {
  const [input, errors] = [new PassThrough(), new PassThrough()]
  const output = Object.assign(new PassThrough(), { isTTY: true, columns })
  const stop = new AbortController().signal
  const code = await runProgram(args, { input, output, errors, stop })
  output.end()
  errors.end()
  expect([code, await text(errors)]).toEqual([0, expect.any(String)])
  return stripVTControlCharacters(await text(output)).split('\n')
}

const isWider = (line: string): boolean => measureWidth(line) > columns

describe('the help', async () => {
  const commands = [...(await optionsByCommand()).keys()]
  const nouns = new Set(commands.map((command) => command.split(' ')[0] ?? ''))

  test.each(['', ...nouns, ...commands])('of "%s" fits', async (command) => {
    const lines = await linesOf(...command.split(' ').filter((word) => word !== ''), '--help')
    expect(lines.filter(isWider)).toEqual([])
    expect(lines.length).toBeGreaterThan(3)
  })
})

const long = 'a-name-that-is-much-longer-than-any-terminal-is-wide-'.repeat(3)
const groups = [
  {
    id: 1042,
    name: long,
    tenantId: 42,
    identifiers: [
      { id: 77, name: 'example.com' },
      { id: 78, name: long },
    ],
  },
]

/** The lines below a row and what follows the table are sentences, which a terminal wraps. */
function rowsOf(lines: readonly string[]): string[] {
  return lines.filter((line) => line !== '' && !/^(?: {4}|there is more|page )/.test(line))
}

test.each([
  'tenants list',
  'groups list',
  'assets list',
  'events search --keyword a',
  'credentials search --domain example.com',
  'api credentials.feed --identifier-id 77',
  'api reports.list',
  'api policies.list',
  'api alerts.list',
])('the table of %s fits under titles in capitals, and is whole with --wide', async (command) => {
  const scene = await aServiceScene(tests, {
    groups,
    backlog: 20,
    credentialBacklog: 20,
    undescribed: true,
    policyPaths: 'hyphen',
  })
  if (command === 'api policies.list') await scene.run(...policy)
  const args = [...command.split(' '), '--config', scene.config]
  const rows = rowsOf(await linesOf(...args))
  expect(rows[0]).toMatch(/^[A-Z]+(?: [A-Z()]+)*(?: {2,}|$)/)
  expect(rows.length).toBeGreaterThan(1)
  expect(rows.filter(isWider)).toEqual([])
  const whole = rowsOf(await linesOf(...args, '--wide'))
  expect(whole).toHaveLength(rows.length)
  expect(whole.join('').length).toBeGreaterThanOrEqual(rows.join('').length)
})

test.each(['items list --state delivered'])(
  'the table of %s fits under titles in capitals, and is whole with --wide',
  async (command) => {
    const scene = await aSocScene(tests, (yaml) => yaml.replace('ann@', `${'ann-'.repeat(15)}@`))
    await scene.show(['lake', 'oncall'], [{ uid: `a/b/${long}`, severity: 'critical' }])
    await scene.attempt('lake', { outcome: 'delivered' })
    await scene.attempt('oncall', { outcome: 'delivered' })
    const args = [...command.split(' '), ...scene.config]
    const rows = rowsOf(await linesOf(...args))
    expect(rows[0]).toMatch(/^[A-Z]+(?: [A-Z()]+)* {2,}/)
    expect(rows.length).toBeGreaterThan(1)
    expect(rows.filter(isWider)).toEqual([])
    const whole = rowsOf(await linesOf(...args, '--wide'))
    expect(whole).toHaveLength(rows.length)
    expect(whole.filter(isWider).length).toBeGreaterThan(0)
  },
)

const value = { keywords: ['x'] }
const creation = { name: long, type: 'INCLUDED_KEYWORDS', value }
const policy = ['api', 'policies.create', '--body', JSON.stringify(creation), '--yes']

test.each([
  [80, { wide: true as const }],
  [undefined, {}],
])('for %s columns with %j no cell of a list is cut', (width, options) => {
  const lines: string[] = []
  const terminal = { columns: width, print: (line: string) => lines.push(line), paint: String }
  const printer = createPrinter({ terminal } as unknown as Context, 'text', listing, options)
  printer.add([long])
  expect(lines.at(-1)).toBe(`1       ${long}  ${long}`)
})

const listing = {
  columns: [
    { title: 'ID', width: 6, text: () => '1' },
    { title: 'TARGET', width: 24, text: (row: string) => row },
    { title: 'NAME', width: 40, text: (row: string) => row },
  ],
} as unknown as Listing<string>

/** What README and CHANGELOG say holds for the code of this version; nothing is left out. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { accountingLine } from '../../src/cli/demo/demo-account.ts'
import { laterCommands, laterRouteCommands } from '../../src/cli/later-commands.ts'
import { runProgram } from '../../src/cli/program.ts'
import { spanInWords } from '../../src/cli/words.ts'
import { parseConfig } from '../../src/config/load.ts'
import { configFile, configKeys, configSchema } from '../../src/config/schema.ts'
import { judge } from '../../src/delivery/retry-policy.ts'
import type { MetricDefinition } from '../../src/runtime/metrics-kinds.ts'
import { metricNames, metricTable } from '../../src/runtime/metrics-table.ts'
import type { Delivery } from '../../src/sinks/sink.ts'
import { renderBody } from '../../src/sinks/webhook/body.ts'
import { sign } from '../../src/sinks/webhook/signature.ts'
import { aMember } from '../support/deliveries.ts'

const root = join(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
const packageJson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string
  scripts: Record<string, string>
}

/** What stands between a heading and the next one that is not below it. */
function sectionOf(heading: string, level = 2): string {
  const marks = '#'.repeat(level)
  const start = readme.indexOf(`\n${marks} ${heading}\n`)
  if (start === -1) throw new Error(`README has no section "${heading}"`)
  const rest = readme.slice(start + marks.length + heading.length + 3)
  const end = rest.search(new RegExp(`^#{1,${level}} `, 'm'))
  return end === -1 ? rest : rest.slice(0, end)
}

/** Fenced blocks of one language, without the indent that a list gives them. */
function blocksOf(language: string): string[] {
  const fences = readme.matchAll(new RegExp(`^( *)\`\`\`${language}\n(.*?)^ *\`\`\``, 'gms'))
  return [...fences].map(([, indent = '', block = '']) =>
    block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  )
}

/** The cells of every row of every table, heads and rules left out. */
function rowsOf(section: string): string[][] {
  return section
    .split('\n')
    .filter((line, at, lines) => line.startsWith('|') && lines[at - 1]?.startsWith('|'))
    .filter((line) => !/^\|[-| ]+\|$/.test(line))
    .map((line) => line.split(' | ').map((cell) => cell.replaceAll(/^\| | \|$/g, '').trim()))
}

function codesIn(cell = ''): string[] {
  return [...cell.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
}

function firstCodes(section: string): string[] {
  return rowsOf(section).flatMap(([first]) => codesIn(first))
}

describe('the beginning', () => {
  const lines = (blocksOf('sh')[0] ?? '').trim().split('\n')

  test('is the two commands, which package.json has', () => {
    expect(lines.map((line) => line.replace(/ +#.*/, ''))).toEqual(['npm run demo', 'npm test'])
    expect(Object.keys(packageJson.scripts)).toEqual(expect.arrayContaining(['demo', 'test']))
  })

  test('says what each needs and shows', () => {
    for (const line of lines) expect(line).toMatch(/# needs .+; \w+s .+/)
  })

  test('quotes an accounting line as the demo prints it', () => {
    const zeros = {
      fetched: 0,
      new: 0,
      late: 0,
      duplicate: 0,
      quarantined: 0,
      held: 0,
      suppressed: 0,
    }
    const rest = { dead: 0, pending: 0, unaccounted: 0, differences: [] }
    const delivered = { slack: 0, email: 0, webhook: 0 }
    const messages = { slack: {}, email: {}, webhook: {} }
    const expected = accountingLine({ ...zeros, ...rest, delivered, messages })
    const [quoted = ''] = (blocksOf('text')[0] ?? '').trim().split('\n')
    expect(quoted.replaceAll(/\d+/g, '0')).toBe(expected)
  })

  test('names no script that package.json does not have', () => {
    const named = [...readme.matchAll(/npm run (?:--silent )?([\w:-]+)/g)].map(([, name]) => name)
    expect(named.filter((name) => !packageJson.scripts[name ?? ''])).toEqual([])
  })
})

describe('every configuration in README', () => {
  const env = {
    TOCSIN_BASE_URL: 'https://api.example.com',
    TOCSIN_API_KEY: 'an-api-key',
    SLACK_WEBHOOK_URL: 'https://hooks.slack.example/services/a/b/c',
    SMTP_URL: 'smtp://user:password@mail.example.com:587',
    SIEM_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  }
  const blocks = blocksOf('yaml')

  test('is found', () => {
    expect(blocks.length).toBeGreaterThanOrEqual(2)
  })

  test.each(blocks.map((block, index) => [index + 1, block]))(
    'number %i loads, without a warning',
    (_number, block) => {
      expect(parseConfig(String(block), { file: 'README.md', env }).warnings).toEqual([])
    },
  )

  test('includes config/minimal.yaml as it is', () => {
    const minimal = readFileSync(join(root, 'config/minimal.yaml'), 'utf8')
    expect(blocks).toContain(minimal.replaceAll(/^#.*\n/gm, ''))
  })
})

interface Field {
  default?: unknown
  properties?: Record<string, Field>
  additionalProperties?: Field | boolean
  items?: Field
  anyOf?: Field[]
  oneOf?: Field[]
  allOf?: Field[]
  $ref?: string
  later?: boolean
  definitions?: Record<string, Field>
}

/** Every field of a schema with its path as `configKeys` writes it; a reference is not followed. */
function fieldsOf(schema: Field, path = ''): [string, Field][] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([key, field]): [string, Field][] => {
    const place = path === '' ? key : `${path}.${key}`
    return [[place, field], ...fieldsOf(field, place)]
  })
  const { additionalProperties: named, items } = schema
  const parts = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
  return [
    ...own,
    ...(typeof named === 'object' ? fieldsOf(named, `${path}.<name>`) : []),
    ...(items ? fieldsOf(items, `${path}[]`) : []),
    ...parts.flatMap((part) => fieldsOf(part, path)),
  ]
}

describe('Configuration', () => {
  const section = sectionOf('Configuration')
  /** The parts that a heading introduces: `accounts.<name>` and the rows of its table. */
  const parts = section
    .split(/^### /m)
    .slice(1)
    .map((part) => ({ prefix: /^`([^`]+)`/.exec(part)?.[1] ?? '', part }))
    .filter(({ prefix }) => prefix !== '')

  /** Key by key as documented, with the text of its default. */
  const documented = parts.flatMap(({ prefix, part }) =>
    rowsOf(part)
      .filter((cells) => cells.length === 4)
      .flatMap(([keys, , fallback = '']) =>
        codesIn(keys).map((key): [string, string] => [
          isWholePath(key, prefix) ? key : `${prefix}.${key}`,
          fallback,
        ]),
      ),
  )

  /** Of `dedupe` and `retention` in one table, and of a list that is a section: its own row. */
  function isWholePath(key: string, prefix: string): boolean {
    return key.startsWith(`${prefix}.`) || prefix === 'dedupe' || prefix === `${key}[]`
  }

  test('names every key, and no key that is not there', () => {
    const paths = documented.flatMap(([path]) => {
      const segments = path.split('.')
      return segments.map((_segment, at) => segments.slice(0, at + 1).join('.'))
    })
    const bare = paths.map((path) => path.replace(/(\[\])$/, ''))
    const keys = new Set(bare.filter((path) => !path.endsWith('<name>')))
    expect([...keys].toSorted()).toEqual(configKeys())
  })

  test('says the default of every key that has one', () => {
    const schema = configSchema() as Field
    const fields = [
      ...fieldsOf(schema),
      ...fieldsOf(schema.definitions?.['route'] ?? {}, 'route.routes[]'),
    ]
    const expected = fields.flatMap(([path, { default: fallback, properties }]) => {
      if (fallback === undefined || (typeof fallback === 'object' && properties)) return []
      return `${path} \`${typeof fallback === 'string' ? fallback : JSON.stringify(fallback)}\``
    })
    // lists, not sets: sinks of several types have keys of the same path, each with its default
    const withDefault = new Set(expected.map((line) => line.split(' ')[0]))
    const said = documented
      .filter(([path, fallback]) => withDefault.has(path) && fallback.startsWith('`'))
      .map(([path, fallback]) => `${path} ${fallback}`)
    expect(said.toSorted()).toEqual(expected.toSorted())
  })

  test('lists every key that is refused as one of a later version', () => {
    const schema = z.toJSONSchema(configFile, { io: 'input', target: 'draft-07' }) as Field
    const onBranchesOnly = [
      'route.name',
      'route.matchers',
      'route.continue',
      'route.stage',
      'route.mute_time_intervals',
      'route.on_mute',
    ]
    const later = [
      ...fieldsOf(schema),
      ...Object.values(schema.definitions ?? {}).flatMap((one) => fieldsOf(one)),
    ]
      .filter(([path, field]) => field.later === true && !onBranchesOnly.includes(path))
      .map(([path]) => path.split('.').at(-1))
    expect(later.length).toBeGreaterThan(10)
    const listed = codesIn(sectionOf('Not in this version', 3))
    expect([...new Set(later)].filter((key) => !listed.includes(key ?? ''))).toEqual([])
  })
})

describe('Commands', () => {
  const section = sectionOf('Commands')
  const rows = rowsOf(section).filter(([first]) => !/^\d+$/.test(first ?? ''))

  async function helpOf(command: string): Promise<string> {
    const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()]
    const { signal: stop } = new AbortController()
    await runProgram([...command.split(' '), '--help'].filter(Boolean), {
      input,
      output,
      errors,
      stop,
    })
    output.end()
    return text(output)
  }

  /** Every command that has none below it, as `--help` lists them: hidden ones are not there. */
  async function commandsBelow(parent: string): Promise<string[]> {
    const help = await helpOf(parent)
    const listed = [...(help.split('\nCommands:\n')[1] ?? '').matchAll(/^ {2}([a-z][\w-]*)/gm)]
    const names = listed.map(([, name]) => `${parent} ${name}`.trim())
    const own = names.filter((name) => !/(^| )help$/.test(name))
    if (own.length === 0) return [parent]
    return (await Promise.all(own.map(commandsBelow))).flat()
  }

  function documentedCommand(row: string[]): string {
    return (codesIn(row[0])[0] ?? '').replaceAll(/ ?[<[].*/g, '')
  }

  test('lists every command of a later version', () => {
    const line = section.split('\n').find((one) => one.startsWith('Commands of later versions'))
    const routes = laterRouteCommands.map((name) => `routes ${name}`)
    const expected = [...routes, ...laterCommands, 'check --against-redis']
    expect(codesIn(line).toSorted()).toEqual(expected.toSorted())
  })

  test('has a row for every command, and for no other', async () => {
    const commands = await commandsBelow('')
    expect(commands.length).toBeGreaterThan(10)
    expect(rows.map(documentedCommand).toSorted()).toEqual(commands.toSorted())
  })

  test.each(rows.map((row) => [documentedCommand(row), row] as const))(
    '%s: the options named are those it has',
    async (command, row) => {
      const flagsOf = (said: string): string[] =>
        [...said.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)].map(([flag]) => flag)
      const common = ['--config', '--output', '--help']
      const has = flagsOf(await helpOf(command)).filter((flag) => !common.includes(flag))
      const inherited = command === 'dead-letters discard' ? ['--sink', '--all', '--reason'] : []
      const named = [...flagsOf(row.join(' ')), ...inherited]
      expect([...new Set(named)].toSorted()).toEqual([...new Set(has)].toSorted())
    },
  )
})

describe('Metrics', () => {
  const section = sectionOf('Metrics')

  function aggregationOf({ kind, scope, brief }: MetricDefinition): string {
    const how = kind === 'gauge' ? 'each' : 'sum'
    const words = { sparse: ', sparse', omitted: ', detailed' }
    return `${scope === 'shared' ? 'max' : how}${typeof brief === 'string' ? words[brief] : ''}`
  }

  /** Those that only `detailed` has stand in parentheses. */
  function labelsOf({ labels, brief }: MetricDefinition): string {
    const isLeftOut = (label: string): boolean =>
      typeof brief === 'object' && brief.without.includes(label)
    const names = Object.keys(labels).map((label) => (isLeftOut(label) ? `(${label})` : label))
    return names.join(', ') || '–'
  }

  test('has a row for every metric, with its labels and how to aggregate it', () => {
    const rows = rowsOf(section).map(([name, labels, how]) =>
      [codesIn(name)[0], labels, how].join(' | '),
    )
    const expected = Object.entries<MetricDefinition>(metricTable).map(([name, definition]) => {
      return [`tocsin_${name}`, labelsOf(definition), aggregationOf(definition)].join(' | ')
    })
    expect(rows.toSorted()).toEqual(expected.toSorted())
  })

  test('names no metric that is not exported, here or elsewhere', () => {
    const named = new Set(readme.match(/\btocsin_[a-z_]+/g))
    expect([...named].filter((name) => !metricNames().includes(name))).toEqual([])
  })

  test('names every value of a closed label', () => {
    const closed = Object.values<MetricDefinition>(metricTable).flatMap(({ labels }) =>
      Object.values(labels).filter((domain) => Array.isArray(domain)),
    )
    const said = new Set(
      codesIn(`${section}\n${sectionOf('Errors')}\n${sectionOf('Configuration')}`),
    )
    expect([...new Set(closed.flat())].filter((word) => !said.has(word))).toEqual([])
  })
})

describe('Errors', () => {
  const section = sectionOf('Errors')
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(root, 'src', file), 'utf8'))
  const errors = sources.flatMap((source) =>
    [...source.matchAll(/class \w+ extends TocsinError \{.*?^\}/gms)].map(([body]) => ({
      code: /readonly code = '(\w+)'/.exec(body)?.[1] ?? '',
      reasons: reasonsIn(source, /readonly reason: (\w+)/.exec(body)?.[1]),
    })),
  )

  /** The words of a union, comments left out. */
  function reasonsIn(source: string, union: string | undefined): string[] {
    if (union === undefined) return []
    const declared = new RegExp(`type ${union} =(.*?)(?:\n\n|\n(?! ))`, 's').exec(source)?.[1] ?? ''
    return [...declared.replaceAll(/\/\/.*/g, '').matchAll(/'(\w+)'/g)].map(([, word = '']) => word)
  }

  test('of the source are found', () => {
    const classes = sources.join('\n').match(/extends TocsinError\b/g)
    expect(errors).toHaveLength(classes?.length ?? 0)
    expect(errors.map(({ code }) => code)).not.toContain('')
    const withReasons = errors.filter(({ reasons }) => reasons.length > 0)
    expect(withReasons.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['TOCSIN_SINK', 'TOCSIN_SERVICE', 'TOCSIN_STORE', 'TOCSIN_HTTP']),
    )
  })

  test('each have a part of their own, and no other has', () => {
    const headings = section.split('\n').filter((line) => line.startsWith('### '))
    expect(headings.flatMap(codesIn).toSorted()).toEqual(errors.map(({ code }) => code).toSorted())
  })

  test.each(errors.filter(({ reasons }) => reasons.length > 0))(
    '$code: every reason says what to do',
    ({ code, reasons }) => {
      const part = sectionOf(`\`${code}\``, 3)
      expect(firstCodes(part).toSorted()).toEqual(reasons.toSorted())
    },
  )

  test('the retry table says the waits as they are', () => {
    const waits: string[] = []
    for (let tries = 0; tries < 2 || waits.at(-1) !== waits.at(-2); tries += 1) {
      const about = { tries, ageMs: 0, retryAfterMs: undefined, members: 1, random: 0.5 }
      const verdict = judge({ reason: 'unavailable', ...about })
      waits.push(verdict.act === 'retry' ? spanInWords(verdict.afterMs) : verdict.act)
    }
    const repeated = waits.pop()
    const row = rowsOf(sectionOf('Retries', 3)).find(([, reason]) => reason === '`unavailable`')
    expect(row?.[2]).toBe(`again after ${waits.join(', ')}, then every ${repeated}`)
  })

  test('the retry table knows every reason of a failed send', () => {
    const sink = errors.find(({ code }) => code === 'TOCSIN_SINK')
    const known = rowsOf(sectionOf('Retries', 3)).flatMap(([, reasons]) => codesIn(reasons))
    expect(known.toSorted()).toEqual(sink?.reasons.toSorted())
  })
})

describe('the webhook', () => {
  const delivery: Delivery = {
    id: '0123456789abcdef',
    destination: { id: 'siem', label: 'siem' },
    members: [aMember()],
    attempt: 1,
    mayBeRepeat: false,
  }

  test('has the shape of the example', () => {
    const example = JSON.parse(blocksOf('json')[0] ?? '') as { data: object }
    const sent = JSON.parse(renderBody(delivery)) as { data: object }
    expect(Object.keys(example)).toEqual(Object.keys(sent))
    expect(Object.keys(example.data)).toEqual(Object.keys(sent.data))
  })

  test('can be verified as the example does', async () => {
    const code = blocksOf('js')[0] ?? ''
    const { isFromTocsin } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as {
      isFromTocsin: (...args: unknown[]) => boolean
    }
    const body = renderBody(delivery)
    const timestamp = 1_795_248_004
    const secrets = ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'a plain text of 24 bytes']
    const headers = {
      'webhook-id': 'e1',
      'webhook-timestamp': String(timestamp),
      'webhook-signature': sign({ id: 'e1', timestamp, body }, secrets),
    }
    const nowMs = timestamp * 1000 + 60_000
    for (const secret of secrets) expect(isFromTocsin(headers, body, secret, nowMs)).toBe(true)
    expect(isFromTocsin(headers, `${body} `, secrets[0], nowMs)).toBe(false)
    expect(isFromTocsin(headers, body, 'another', nowMs)).toBe(false)
    expect(isFromTocsin(headers, body, secrets[0], nowMs + 600_000)).toBe(false)
    expect(isFromTocsin({}, body, secrets[0], nowMs)).toBe(false)
  })
})

describe('Promises', () => {
  const rows = rowsOf(sectionOf('Promises'))

  test('each name the test that shows it, or say that there is none yet', () => {
    expect(rows.length).toBeGreaterThan(10)
    const bare = rows.filter(
      ([, shownBy = '']) => !/\(test\/[\w/.-]+\.test\.ts\)|^not yet shown by a test$/.test(shownBy),
    )
    expect(bare).toEqual([])
  })
})

describe('every link', () => {
  const pages = ['README.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'SECURITY.md'].filter((page) =>
    existsSync(join(root, page)),
  )

  test.each(pages)('of %s within the repository leads somewhere', (page) => {
    const content = readFileSync(join(root, page), 'utf8').replaceAll(/^ *```.*?^ *```/gms, '')
    const targets = [...content.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
    const anchors = content
      .split('\n')
      .filter((line) => /^#{1,6} /.test(line))
      .map((line) => `#${anchorOf(line.replace(/^#+ /, ''))}`)
    const broken = targets
      .filter((target) => !/^https?:/.test(target))
      .filter((target) =>
        target.startsWith('#')
          ? !anchors.includes(target)
          : !existsSync(join(root, target.replace(/#.*/, ''))),
      )
    expect(broken).toEqual([])
  })

  /** As GitHub makes them. */
  function anchorOf(heading: string): string {
    return heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-')
  }
})

describe('CHANGELOG', () => {
  const versions = [...changelog.matchAll(/^## \[([^\]]+)\] - (\S+)$/gm)]

  test('begins with the version of package.json', () => {
    expect(versions[0]?.[1]).toBe(packageJson.version)
  })

  test('dates every version', () => {
    expect(versions).toHaveLength(changelog.match(/^## (?!\[Unreleased\]$)/gm)?.length ?? 0)
    for (const [, , date = ''] of versions) {
      expect(new Date(date).toISOString().slice(0, 10)).toBe(date)
    }
  })
})

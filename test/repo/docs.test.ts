/** What README, docs/ and CHANGELOG say holds for the code of this version. */
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { accountLines, demoSinks } from '../../src/cli/demo/account.ts'
import { parseConfig } from '../../src/config/load.ts'
import { configKeys } from '../../src/config/schema.ts'
import { metricNames } from '../../src/lib/metrics/metric-table.ts'
import type { Delivery } from '../../src/sinks/sink.ts'
import { renderBody } from '../../src/sinks/webhook/body.ts'
import { sign } from '../../src/sinks/webhook/signature.ts'
import { configurationBlocks } from '../docs/configuration.ts'
import { blockNames, fencedBlocks } from '../docs/markdown.ts'
import { generatedBlocks, pagesOfThisVersion, readPage, root, stalePages } from '../docs/pages.ts'
import { aMember } from '../support/deliveries.ts'

const pages = pagesOfThisVersion()
const everything = [...pages.values()].join('\n')
const readme = readPage('README.md')
const changelog = readPage('CHANGELOG.md')
const packageJson = JSON.parse(readPage('package.json')) as {
  version: string
  scripts: Record<string, string>
}

const env = {
  TOCSIN_BASE_URL: 'https://api.example.com',
  TOCSIN_API_KEY: 'an-api-key',
  SLACK_WEBHOOK_URL: 'https://hooks.slack.example/services/a/b/c',
  SMTP_URL: 'smtp://user:password@mail.example.com:587',
  SIEM_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
}

function codesIn(text = ''): string[] {
  return [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
}

describe('README', () => {
  test('stays short enough to be read', () => {
    expect(readme.split('\n').length).toBeLessThanOrEqual(250)
  })

  test('includes config/minimal.yaml as it is', () => {
    const minimal = readPage('config/minimal.yaml')
    expect(fencedBlocks(readme, 'yaml')).toContain(minimal.replaceAll(/^#.*\n/gm, ''))
  })
})

describe('generated parts', () => {
  test('are fresh: npm run docs', async () => {
    expect((await stalePages()).map(({ path }) => path)).toEqual([])
  })

  test('stand each on one page', async () => {
    const placed = [...pages.values()].flatMap(blockNames)
    expect(placed.toSorted()).toEqual([...(await generatedBlocks()).keys()].toSorted())
  })

  test('name every key of the configuration', () => {
    const shown = configurationBlocks().flatMap(([name, text]) => {
      const section = /^configuration ([a-z_]+)/.exec(name)?.[1] ?? ''
      const rows = text.matchAll(/^\| `([^`]+)`/gm)
      return [section, ...[...rows].map(([, key = '']) => `${section} ${key}`)]
    })
    const keys = configKeys().map((path) =>
      path.replace(/^(\w+)(\.<name>)?(\[\])?\.(routes\[\]\.)?/, '$1 '),
    )
    const said = new Set([...shown, 'feeds type', 'sinks type'])
    expect(keys.filter((key) => !said.has(key))).toEqual([])
    expect(keys.length).toBeGreaterThan(100)
  })
})

describe('configuration', () => {
  const blocks = [...pages].flatMap(([path, text]) =>
    fencedBlocks(text, 'yaml').map((block) => [path, block] as const),
  )

  test.each(blocks)('an example of %s loads, without a warning', (path, block) => {
    expect(parseConfig(block, { file: path, env }).warnings).toEqual([])
  })

  const redisExamples = fencedBlocks(readPage('docs/install.md'), 'text').filter((text) =>
    text.startsWith('redis:'),
  )

  test.each(redisExamples)('the section %s loads in the smallest configuration', (section) => {
    const folder = mkdtempSync(join(tmpdir(), 'tocsin-docs-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'redis-password'), 'Pq7Zr2Lx9Vt4Kw8N', { mode: 0o600 })
    writeFileSync(join(folder, 'ca.pem'), readPage('test/fixtures/tls/localhost-cert.pem'))
    const minimal = readPage('config/minimal.yaml').replace(/^redis:\n(?: .*\n)+/m, '')
    const text = `${minimal}\n${section}`
    expect(parseConfig(text, { file: join(folder, 'tocsin.yaml'), env }).warnings).toEqual([])
  })
})

test('no page names a metric that is not exported', () => {
  const named = new Set(everything.match(/(?<!#)\btocsin_[a-z_]+/g))
  expect(named.size).toBeGreaterThan(50)
  expect([...named].filter((name) => !metricNames().includes(name))).toEqual([])
})

test('every error has a part of its own, and no other has', () => {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(root, 'src', file), 'utf8'))
  const errors = sources.flatMap((source) =>
    [...source.matchAll(/class \w+ extends (?:TocsinError|ReasonedError<\w+>) \{.*?^\}/gms)].map(
      ([body]) => /readonly code = '(\w+)'/.exec(body)?.[1] ?? '',
    ),
  )
  expect(errors.length).toBeGreaterThan(5)
  const headings = readPage('docs/reference/errors.md').match(/^## .+$/gm) ?? []
  expect(headings.flatMap(codesIn).toSorted()).toEqual(errors.toSorted())
})

describe('quoted outputs', () => {
  const accounts = [...pages].flatMap(([path, text]) =>
    fencedBlocks(text, 'text')
      .filter((block) => block.startsWith('RECEIVER'))
      .map((block) => [path, block] as const),
  )

  test.each(accounts)('the account in %s has the form that the demo prints', (_path, block) => {
    const sinks = demoSinks.map((sink) => ({ sink, sent: 0, got: 0 }))
    const expected = accountLines({ shown: 0, found: 0, sinks }).join('\n')
    const form = (text: string): string =>
      text.trim().replaceAll(/\d+/g, '0').replaceAll(/ +/g, ' ')
    expect(form(block)).toBe(form(expected))
  })

  test('show the subject of the digest as it is recorded', () => {
    const quoted = /<!-- golden: mails "([^"]+)" -->\n\n```text\n(.+)\n```/.exec(readme)
    const [, scene = '', subject = ''] = quoted ?? []
    const mails = readFileSync(join(root, 'test/golden/recorded/mails.txt'), 'utf8')
    const [, recorded = ''] = mails.split(`==== ${scene}\n`)
    expect(/"subject": "(.+)"/.exec(recorded)?.[1]).toBe(subject)
  })
})

describe('the webhook', () => {
  const page = readPage('docs/sinks.md')
  const delivery: Delivery = {
    id: '0123456789abcdef',
    destination: { id: 'siem', label: 'siem' },
    members: [aMember()],
    attempt: 1,
    mayBeRepeat: false,
  }

  test('has the shape of the example', () => {
    const example = JSON.parse(fencedBlocks(page, 'json')[0] ?? '') as { data: object }
    const sent = JSON.parse(renderBody(delivery)) as { data: object }
    expect(Object.keys(example)).toEqual(Object.keys(sent))
    expect(Object.keys(example.data)).toEqual(Object.keys(sent.data))
  })

  test('can be verified as the example does', async () => {
    const code = fencedBlocks(page, 'js')[0] ?? ''
    const { isFromTocsin } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as {
      isFromTocsin: (...args: unknown[]) => boolean
    }
    const body = renderBody(delivery)
    const timestamp = 1_795_248_004
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    const headers = {
      'webhook-id': 'e1',
      'webhook-timestamp': String(timestamp),
      'webhook-signature': sign({ id: 'e1', timestamp, body }, secret),
    }
    const nowMs = timestamp * 1000 + 60_000
    expect(isFromTocsin(headers, body, secret, nowMs)).toBe(true)
    expect(isFromTocsin(headers, `${body} `, secret, nowMs)).toBe(false)
    expect(isFromTocsin(headers, body, 'another', nowMs)).toBe(false)
    expect(isFromTocsin(headers, body, secret, nowMs + 600_000)).toBe(false)
    expect(isFromTocsin({}, body, secret, nowMs)).toBe(false)
  })
})

test('every script that a page names is in package.json', () => {
  const named = [...everything.matchAll(/npm run (?:--silent )?([\w:-]+)/g)].map(([, name]) => name)
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter((name) => !packageJson.scripts[name ?? ''])).toEqual([])
})

test('CHANGELOG begins with the version of package.json, or with what is not released yet', () => {
  const [, newest] = /^## \[([^\]]+)\]/m.exec(changelog) ?? []
  const isUnreleased = packageJson.version.endsWith('-dev')
  expect(newest).toBe(isUnreleased ? 'Unreleased' : packageJson.version)
})

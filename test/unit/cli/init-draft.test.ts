/** Whatever is answered stands in the file as it was answered. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import {
  type Draft,
  type DraftSink,
  renderWithFiles,
  sinkKinds,
  tryDraft,
} from '../../../src/cli/set-up/init-draft.ts'

interface Written {
  redis: Record<string, unknown>
  accounts: { main: Record<string, unknown> }
  sinks: Record<string, Record<string, unknown>>
  route: { sinks: string[] }
}

const odd = `it's "odd" #1: {a}, [b] & *c $HOME ${'${PATH}'}`

function aSink(type: string, name: string, values: Record<string, string>): DraftSink {
  return { name, kind: sinkKinds.find((kind) => kind.type === type)!, values }
}

const draft: Draft = {
  redisUrl: 'redis://localhost/0',
  baseUrl: 'https://api.example.com/v1#part: one',
  apiKey: 'fw #1: key',
  tenantId: '42',
  sinks: [
    aSink('slack', 'soc', { url: 'https://x.example/#a' }),
    aSink('email', 'oncall', {
      smtp: 'smtp://u:p#@h',
      from: odd,
      to: 'a #b <a@b.example>, c: d@e.example,- f',
    }),
    aSink('webhook', 'siem', { url: 'https://x.example/h?a=1#b: c', secret: 'whsec_ #: x' }),
  ],
  allowPrivate: false,
}

/** `$$` stands for a `$`; a single one would be the beginning of a variable. */
function plain(value: unknown): unknown {
  expect(JSON.stringify(value)).not.toMatch(/(?<!\$)(?:\$\$)*\$(?!\$)/)
  return JSON.parse(JSON.stringify(value).replaceAll('$$', '$'))
}

test.each([
  'tocsin.yaml',
  'my tocsin.yaml',
  'tocsin #2.yaml',
  'a: b.yaml',
  "it's.yaml",
  '- x.yaml',
  '$HOME ${PATH}.yaml',
  '/etc/tocsin/[a]{b},"c" &d *e !f %g.yaml',
])('the answers and the files of secrets are read back from %s', (file) => {
  const { text, secrets } = renderWithFiles(draft, file)
  const written = plain(parse(text)) as Written
  const names = new Map(secrets.map(({ fileName, value }) => [value, fileName]))
  expect(written.redis).toEqual({ url_file: names.get('redis://localhost/0') })
  expect(written.accounts.main).toEqual({
    base_url: draft.baseUrl,
    api_key_file: names.get('fw #1: key'),
    tenant_id: 42,
  })
  expect(written.sinks).toEqual({
    soc: { type: 'slack', url_file: names.get('https://x.example/#a') },
    oncall: {
      type: 'email',
      smtp_file: names.get('smtp://u:p#@h'),
      from: odd,
      to: ['a #b <a@b.example>', 'c: d@e.example', '- f'],
    },
    siem: {
      type: 'webhook',
      url_file: names.get('https://x.example/h?a=1#b: c'),
      secret_file: names.get('whsec_ #: x'),
    },
  })
  expect(written.route.sinks).toEqual(['soc', 'oncall', 'siem'])
})

test('an answer with a # or a $ is tried as it will be written', () => {
  const siem = aSink('webhook', 'siem', { url: 'https://x.example/h#b', secret: 'a'.repeat(32) })
  const answered = { apiKey: '$a${B}#c', sinks: [siem], allowPrivate: false }
  const config = tryDraft(answered, 'tocsin.yaml')
  if (typeof config === 'string') throw new Error(config)
  expect(config.accounts[0]?.apiKey.reveal()).toBe('$a${B}#c')
  const [sink] = config.sinks
  expect(sink?.type === 'webhook' && sink.url.reveal()).toBe('https://x.example/h#b')
})

test('two configurations in one folder share no file of a secret', () => {
  const names = (file: string): string[] =>
    renderWithFiles(draft, file).secrets.map(({ fileName }) => fileName)
  const all = [...names('/etc/tocsin/north.yaml'), ...names('/etc/tocsin/south.yaml')]
  expect(new Set(all).size).toBe(all.length)
})

test('the page that it names for routes by severity has one', () => {
  const [, page = ''] =
    /(docs\S+\.md) begins with routes/.exec(renderWithFiles(draft, 'x.yaml').text) ?? []
  const [example = ''] = readFileSync(join(import.meta.dirname, '../../..', page), 'utf8').split(
    '\n## ',
    2,
  )
  expect(example).toContain("matchers: ['severity>=high']")
})

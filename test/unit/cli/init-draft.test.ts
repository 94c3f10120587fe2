/** Whatever is answered stands in the file as it was answered. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { type Draft, draftConfig, renderDraft } from '../../../src/cli/set-up/init-draft.ts'

interface Written {
  redis: Record<string, unknown>
  accounts: { main: Record<string, unknown> }
  feeds: { brand: { identifier_group: unknown } }
  sinks: Record<string, Record<string, unknown>>
  route: { sinks: string[] }
}

const odd = `it's "odd" #1: {a}, [b] & *c $HOME ${'${PATH}'}`

const draft: Draft = {
  redis: { url: 'redis://localhost/0' },
  account: {
    baseUrl: 'https://api.example.com/v1#part: one',
    apiKey: 'fw #1: key',
    linkHost: 'app.example.com',
  },
  group: { id: 7, name: `${odd}\nsinks: {}` },
  sinks: [
    {
      name: 'soc',
      type: 'slack',
      secret: 'https://x.example/#a',
      keys: { channel: '#alerts: soc' },
    },
    {
      name: 'oncall',
      type: 'email',
      secret: 'smtp://u:p#@h',
      keys: { from: odd, to: ['a #b <a@b.example>', 'c: d@e.example', '- f'] },
    },
    {
      name: 'siem',
      type: 'webhook',
      secret: 'https://x.example/h?a=1#b: c',
      keys: { allow_private: true },
      signingSecret: 'whsec_ #: x',
    },
  ],
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
  const { text, secrets } = renderDraft(draft, file)
  const written = plain(parse(text)) as Written
  const names = new Map(secrets.map(({ fileName, value }) => [value, fileName]))
  expect(written.redis).toEqual({ url_file: names.get('redis://localhost/0') })
  expect(written.accounts.main).toEqual({
    base_url: draft.account.baseUrl,
    api_key_file: names.get('fw #1: key'),
    link_hosts: ['app.example.com'],
  })
  expect(written.feeds.brand.identifier_group).toBe(7)
  expect(written.sinks).toEqual({
    soc: { type: 'slack', url_file: names.get('https://x.example/#a'), channel: '#alerts: soc' },
    oncall: { type: 'email', smtp_file: names.get('smtp://u:p#@h'), ...draft.sinks[1]?.keys },
    siem: {
      type: 'webhook',
      url_file: names.get('https://x.example/h?a=1#b: c'),
      secret_file: names.get('whsec_ #: x'),
      allow_private: true,
    },
  })
  expect(written.route.sinks).toEqual(['soc', 'oncall', 'siem'])
})

test('an answer with a # or a $ is tried as it will be written', () => {
  const { accounts, sinks } = draftConfig(
    {
      account: { baseUrl: 'https://api.example.com', apiKey: '$a${B}#c', linkHost: undefined },
      sinks: [{ name: 'siem', type: 'webhook', secret: 'https://x.example/h#b', keys: {} }],
    },
    'tocsin.yaml',
  )
  expect(accounts[0]?.apiKey.reveal()).toBe('$a${B}#c')
  const [sink] = sinks
  expect(sink?.type === 'webhook' && sink.url.reveal()).toBe('https://x.example/h#b')
})

test('two configurations in one folder share no file of a secret', () => {
  const names = (file: string): string[] =>
    renderDraft(draft, file).secrets.map(({ fileName }) => fileName)
  const all = [...names('/etc/tocsin/north.yaml'), ...names('/etc/tocsin/south.yaml')]
  expect(new Set(all).size).toBe(all.length)
})

test('the page that it names for routes by severity has one', () => {
  const [, page = ''] =
    /(docs\S+\.md) begins with routes/.exec(renderDraft(draft, 'x.yaml').text) ?? []
  const [example = ''] = readFileSync(join(import.meta.dirname, '../../..', page), 'utf8').split(
    '\n## ',
    2,
  )
  expect(example).toContain("matchers: ['severity>=high']")
})

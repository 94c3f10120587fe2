import { describe, expect, test } from 'vitest'
import { createLinkFilter, readLinkHost } from '../../../src/upstream/links.ts'

function linkWith(baseUrl: string, ...linkHosts: string[]): (url: string | null) => string | null {
  const link = createLinkFilter([{ name: 'main', baseUrl, linkHosts }])
  return (url) => link('main', url)
}

describe('links of an account whose API is at api.example.com', () => {
  const link = linkWith('https://api.example.com')

  test.each([
    ['https://app.example.com/#/uid?uid=a/b/c', 'https://app.example.com/#/uid?uid=a/b/c'],
    ['HTTPS://APP.Example.com', 'https://app.example.com/'],
    ['https://example.com/', 'https://example.com/'],
    ['https://app.eu.example.com/', 'https://app.eu.example.com/'],
    ['https://api.example.com:443/x', 'https://api.example.com/x'],
    // what browsers take for a slash ends the host: no login, and no host of anybody else
    ['https://app.example.com\\@evil.example/', 'https://app.example.com/@evil.example/'],
    ['https://app.example.com/"><b>\u202E', 'https://app.example.com/%22%3E%3Cb%3E%E2%80%AE'],
  ])('may lead to its domain: %j', (url, href) => {
    expect(link(url)).toBe(href)
  })

  test.each([
    'https://evil.example/',
    'https://app.example.com.evil.example/',
    'https://notexample.com/',
    'https://evil-example.com/',
    'https://example.com./',
    'https://.example.com/',
    'https://a..example.com/',
    'https://ap"p.example.com/',
    'https://a,b.example.com/',
    "https://a'b.example.com/",
    'https://(a.example.com/',
    'https://app.example.com@evil.example/',
    'https://joe:secret@app.example.com/',
    'https://joe@app.example.com/',
    'https://:secret@app.example.com/',
    'https://app.example.com:8443/',
    'https://еxample.com/',
    'http://app.example.com/',
    'http://api.example.com/',
    'ftp://app.example.com/',
    'javascript:alert(1)//app.example.com',
    '//app.example.com/',
    'nonsense',
    '',
    null,
  ])('may not lead elsewhere: %j', (url) => {
    expect(link(url)).toBeNull()
  })
})

test.each([
  ['https://api.example.co.uk', 'https://app.example.co.uk/', 'https://evil.co.uk/'],
  ['https://api.eu.example.io', 'https://app.eu.example.io/', 'https://app.example.io/'],
  ['https://api.co.uk', 'https://api.co.uk/x', 'https://evil.co.uk/'],
  ['https://api.gouv.fr', 'https://api.gouv.fr/x', 'https://evil.gouv.fr/'],
  ['https://api.adv.br', 'https://api.adv.br/x', 'https://evil.adv.br/'],
  ['https://api.com', 'https://api.com/x', 'https://evil.com/'],
  ['https://api.example.com.', 'https://app.example.com/x', 'https://evil.com./'],
  ['https://tocsin.github.io', 'https://tocsin.github.io/x', 'https://evil.github.io/'],
  ['https://gateway.example.com/ti', 'https://gateway.example.com/x', 'https://app.example.com/'],
  ['https://example.com', 'https://example.com/x', 'https://app.example.com/'],
  [
    'https://api.example.com:8443',
    'https://app.example.com:8443/',
    'https://app.example.com:8444/',
  ],
  ['https://api.example.com:8443', 'https://app.example.com/', 'http://app.example.com/'],
  ['https://api.acme.de', 'https://app.acme.de/', 'https://app.acme.com/'],
  ['https://10.0.0.1', 'https://10.0.0.1/x', 'https://10.0.0.2/'],
  ['https://[2001:db8::1]', 'https://[2001:db8::1]/x', 'https://[2001:db8::2]/'],
  ['https://api', 'https://api/x', 'https://app/'],
  ['http://localhost:8080', 'http://localhost:8080/x', 'http://localhost:9090/'],
  ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/x', 'http://127.0.0.2:8080/'],
  ['http://127.0.0.1:8080', 'https://127.0.0.1/x', 'https://127.0.0.1:8080/'],
])('of base_url %s a link may lead to %s and not to %s', (baseUrl, own, foreign) => {
  const link = linkWith(baseUrl)
  expect([link(own), link(foreign)]).toEqual([own, null])
})

test('link_hosts allow exactly a host, or behind a dot a domain with all its hosts', () => {
  const link = linkWith('http://127.0.0.1:8080', 'app.example.com', '.example.net')
  const allowed = ['https://app.example.com/', 'https://example.net/', 'https://a.b.example.net/']
  const refused = [
    'https://x.app.example.com/',
    'https://example.com/',
    'https://evilexample.net/',
    'http://app.example.com/',
    'https://app.example.com:8080/',
  ]
  expect(allowed.map(link)).toEqual(allowed)
  expect(refused.map(link)).toEqual(refused.map(() => null))
})

test.each([
  ['App.Example.COM', 'app.example.com'],
  [' app.example.com\n', 'app.example.com'],
  ['.bücher.example', '.xn--bcher-kva.example'],
  ['localhost', 'localhost'],
  ['.ibm.de', '.ibm.de'],
  ['.1and1.example', '.1and1.example'],
  ['10.1', '10.0.0.1'],
  ['[2001:DB8::1]', '[2001:db8::1]'],
])('%j in link_hosts is %j', (written, host) => {
  expect(readLinkHost(written)).toBe(host)
})

test.each([
  'https://app.example.com',
  'app.example.com:443',
  'app.example.com/x',
  'joe@app.example.com',
  '*.example.com',
  'app..example.com',
  'app.example.com.evil.example#',
  'app.example.com\nevil.example',
  '.',
  '.com',
  '.co.uk',
  '.10.0.0.1',
  '.[::1]',
])('%j is no entry of link_hosts', (written) => {
  expect(readLinkHost(written)).toMatchObject({
    remedy: expect.stringContaining('app.example.com'),
  })
})

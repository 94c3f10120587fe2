/** Everything wrong that somebody or something may hand to a daemon, as tables. Parsers have more in their own tests. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** One wrong thing. */
export interface BadInput<Content = string> {
  name: string
  content: Content
}

function named<Content>(
  what: string,
  table: Readonly<Record<string, Content>>,
): BadInput<Content>[] {
  return Object.entries(table).map(([name, content]) => ({ name: `${what}: ${name}`, content }))
}

// Answers of the service, or of whatever answers in its place ---------------------------------------

/** An answer as it goes over the wire; a length that is not given is the true one. */
export function answerOf(body: string | Buffer, { status = '200 OK', headers = '' } = {}): Buffer {
  const bytes = Buffer.from(body)
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${bytes.length}\r\n${headers}connection: close\r\n\r\n`
  return Buffer.concat([Buffer.from(head), bytes])
}

const ok = '{"items":[],"next":null}'

/** In the form of HTTP, with nonsense inside. */
export const badBodies: BadInput<Buffer>[] = named<string | Buffer>('body', {
  nothing: '',
  'a word': 'ok',
  null: 'null',
  'a number beyond all': '1e999',
  'items that are null': '{"items":null,"next":null}',
  'items that are an object': '{"items":{"0":{}},"next":null}',
  'a next that is an object': '{"items":[],"next":{"cursor":"a"}}',
  'keys of a prototype': '{"__proto__":{"items":[]},"constructor":{"prototype":{"items":[]}}}',
  'a page that ends inside an escape': '{"items":["\\u00',
  'two pages': ok + ok,
  'a web page': '<!doctype html><title>Sign in</title><h1>Sign in</h1>',
  'zero bytes': Buffer.alloc(4096),
  'bytes that are no UTF-8': Buffer.from([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
  'UTF-16': Buffer.from(ok, 'utf16le'),
  'gzip that nobody asked for': Buffer.from('1f8b08000000000000ffabae0500a0ee8e5d02000000', 'hex'),
  'an endless depth': `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
  'a key a million long': `{"${'k'.repeat(1_000_000)}":1}`,
  'a text two million long': `"${'x'.repeat(2_000_000)}"`,
}).map(({ name, content }) => ({ name, content: answerOf(content) }))

/** Whatever is inside: the answer itself is wrong. */
export const badHeads: BadInput<Buffer>[] = named<string | Buffer>('head', {
  'no HTTP at all': 'SSH-2.0-OpenSSH_9.9\r\n',
  'an answer of TLS': Buffer.from('15030300020228', 'hex'),
  'a status that is a word': `HTTP/1.1 fine OK\r\n\r\n`,
  'a status of 999': answerOf(ok, { status: '999 What' }),
  'a head that ends early': 'HTTP/1.1 200 OK\r\ncontent-ty',
  'a body that ends early': `HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n${ok}`,
  'two lengths': `HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 24\r\n\r\n${ok}`,
  'a length and chunks': `HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  'chunks that are none': `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n${ok}`,
  'gzip that is none': answerOf(ok, { headers: 'content-encoding: gzip\r\n' }),
  'a header of 200 KB': `HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(200_000)}\r\n\r\n${ok}`,
  'a redirect to a file': answerOf('', {
    status: '301 Moved',
    headers: 'location: file:///etc/passwd\r\n',
  }),
  'no content': 'HTTP/1.1 204 No Content\r\n\r\n',
  'another protocol from now on':
    'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
  'a 422 of nonsense': answerOf('{"detail":[null,7,{"loc":[[]],"msg":{}}]}', { status: '422 No' }),
  'a 500 of escapes': answerOf('\u001B[2J\u0007{"error":"\\u001b[31m"}', { status: '500 Oh' }),
  'a 503 until the year 9999': answerOf('', {
    status: '503 Later',
    headers: 'retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n',
  }),
  'a 503 until a number beyond all': answerOf('', {
    status: '503 Later',
    headers: `retry-after: ${'9'.repeat(400)}\r\n`,
  }),
}).map(({ name, content }) => ({ name, content: Buffer.from(content) }))

/** The answer to a request for a token, likewise. */
export const badGrants: BadInput<Buffer>[] = named('grant', {
  'a token that is null': '{"token":null}',
  'a token that is a list': '{"token":["a"]}',
  'a token with a line end': '{"token":"a\\r\\nx-injected: 1"}',
  'a token of half a character': '{"token":"\\ud800"}',
  'a token of a megabyte': `{"token":"${'t'.repeat(1_000_000)}"}`,
  'a web page': '<html></html>',
}).map(({ name, content }) => ({ name, content: answerOf(content) }))

// Items of a page -----------------------------------------------------------------------------------

const uid = 'paste/x/1'

/** Without a usable uid: each is kept aside alone. */
export const badItems: BadInput<unknown>[] = named<unknown>('item', {
  null: null,
  'a text': uid,
  'a list of items': [{ metadata: { uid } }],
  'an empty object': {},
  'metadata that is a list': { metadata: [uid] },
  'an empty uid': { metadata: { uid: '' } },
  'a uid that is an object': { metadata: { uid: { toString: 'a' } } },
  'a uid with a line end': { metadata: { uid: 'paste/x/1\nforged' } },
  'a uid with an escape': { metadata: { uid: 'paste/\u001B[2J/1' } },
  'a uid of half a character': { metadata: { uid: 'paste/x/\uD800' } },
  'a uid of 600 characters': { metadata: { uid: 'x'.repeat(600) } },
  "a uid of Tocsin's own": { metadata: { uid: 'notice/tocsin/1' } },
})

const wrong = { a: {} }

/** With a uid, and something else odd: each is an event. */
export const oddItems: BadInput<unknown>[] = named<{ metadata?: object }>('item', {
  type: { metadata: { type: wrong } },
  severity: { metadata: { severity: wrong } },
  'the time of creation': { metadata: { estimated_created_at: wrong } },
  'the link': { metadata: { flare_url: wrong } },
  tags: { tenant_metadata: { tags: wrong } } as object,
  identifiers: { identifiers: wrong } as object,
  'the name of an identifier': { identifiers: [{ id: wrong }] } as object,
  'the whole tenant': { tenant_metadata: [wrong] } as object,
}).map(({ name, content }, at) => ({
  name,
  content: { ...content, metadata: { uid: `paste/odd/${at}`, ...content.metadata } },
}))

// Requests to the port of /metrics ------------------------------------------------------------------

const host = 'Host: localhost\r\n'
const close = 'Connection: close\r\n'
const get = (target: string): string => `GET ${target} HTTP/1.1\r\n${host}${close}\r\n`
const post = (headers: string, body: string): string =>
  `POST / HTTP/1.1\r\n${host}${headers}\r\n${body}`
const inner = `GET /healthz HTTP/1.1\r\n${host}\r\n`

export const badRequests: BadInput<Buffer>[] = named<string | Buffer>('request', {
  nothing: '',
  'a thousand line ends': '\r\n'.repeat(1000),
  'half a request': 'GET /metr',
  'a method that there is not': get('/metrics').replace('GET', 'GETT'),
  'a method with a zero byte': get('/metrics').replace('GET', 'G\u0000T'),
  CONNECT: get('/metrics').replace('GET', 'CONNECT'),
  'a version of the future': get('/metrics').replace('HTTP/1.1', 'HTTP/9.9'),
  'a target beside all': get('*'),
  'a target above the root': get('/%2e%2e/%2e%2e/etc/passwd'),
  'a target of half an escape': get('/%zz'),
  'a target with a zero byte': get('/%00'),
  'a target of 20 KB': get(`/${'%41'.repeat(7000)}`),
  'a target of another host': get('http://[::1'),
  'a target of a prototype': get('/__proto__'),
  'a target of markup': get('/<script>'),
  'no host': `GET /metrics HTTP/1.1\r\n${close}\r\n`,
  'two hosts': `GET /metrics HTTP/1.1\r\n${host}${host}${close}\r\n`,
  'a header without a colon': `GET /metrics HTTP/1.1\r\n${host}nonsense\r\n${close}\r\n`,
  'a folded header': `GET /metrics HTTP/1.1\r\n${host}X-A: b\r\n c\r\n${close}\r\n`,
  'a header of 100 KB': `GET /metrics HTTP/1.1\r\n${host}X-A: ${'a'.repeat(100_000)}\r\n${close}\r\n`,
  'five thousand headers': `GET /metrics HTTP/1.1\r\n${host}${'X-A: b\r\n'.repeat(5000)}${close}\r\n`,
  'line ends of old': 'GET /metrics HTTP/1.1\rHost: localhost\r\r',
  'a hello of TLS': Buffer.from('16030100a5010000a10303', 'hex'),
  'a preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'all bytes': Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  'a megabyte of nothing': Buffer.alloc(1_000_000, 0x20),
  'a body that never comes': post('Content-Length: 5000\r\n', 'x'),
  'a body of two megabytes': post('Content-Length: 2000000\r\n', 'x'.repeat(2_000_000)),
  'a negative length': post('Content-Length: -5\r\n', ''),
  'chunks that are none': post('Transfer-Encoding: chunked\r\n', 'zz\r\n'),
  'a chunk beyond all': post('Transfer-Encoding: chunked\r\n', `${'f'.repeat(20)}\r\n`),
  'a request inside a request': post(
    `Content-Length: ${inner.length}\r\nTransfer-Encoding: chunked\r\n`,
    `0\r\n\r\n${inner}`,
  ),
  'a hundred requests at once': get('/nowhere').replace(close, '').repeat(100),
}).map(({ name, content }) => ({ name, content: Buffer.from(content) }))

// Configurations and command lines ------------------------------------------------------------------

export const fixtures = join(import.meta.dirname, '../../fixtures/config')

/** What the files speak of; the daemon is started with it. */
export const variables = {
  EMPTY: '',
  WORD: 'seven',
  TOCSIN_BASE_URL: 'https://api.example.com',
  TOCSIN_API_KEY: 'the-secret-key',
  SLACK_WEBHOOK_URL: 'https://hooks.example.com/the-secret-token',
  SMTP_URL: 'smtp://user:the-secret-password@mail.example.com',
  SIEM_SECRET: 'the-secret-signature',
}

/** The examples of mistakes. */
export function badConfigurations(): BadInput[] {
  return readdirSync(join(fixtures, 'bad'))
    .filter((file) => file.endsWith('.yaml'))
    .map((name) => ({ name, content: readFileSync(join(fixtures, 'bad', name), 'utf8') }))
}

/** What is typed wrongly. `CONFIG` stands for a configuration that is right. */
const lines = [
  '',
  '-',
  '--',
  '-x',
  'nonsense',
  'RUN',
  'feeds',
  'feeds nonsense',
  '__proto__',
  'constructor',
  'feeds rewind nowhere --to 7d --config CONFIG',
  'silences add type=~"(" --for 1h --reason x --by me --config CONFIG',
  'sinks test nowhere --config CONFIG',
  'events search --from ??? --config CONFIG',
  'init CONFIG/tocsin.yaml',
  'render /nowhere --sink soc --config CONFIG',
  'demo --for soon',
  'items list --severity hihg --config CONFIG',
  'check CONFIG CONFIG',
  'check .',
  'monitoring apply --file /nowhere',
]

/** Each as the words of one command line. */
export const badArguments: BadInput<string[]>[] = lines.map((line) => ({
  name: `tocsin ${line}`,
  content: line.split(' '),
}))

/** What may arrive at the port of /metrics and is no request of Prometheus. Bytes as they are sent. */
import type { BadInput } from './bad-input.ts'

const host = 'Host: localhost\r\n'
const close = 'Connection: close\r\n'
const get = (target: string): string => `GET ${target} HTTP/1.1\r\n${host}${close}\r\n`
const inner = `GET /healthz HTTP/1.1\r\n${host}\r\n`

const methods = [
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PROPFIND',
  'PURGE',
  'LINK',
  'M-SEARCH',
  'get',
  'GETT',
  'G\u0000T',
  '',
  '\u202E',
  'GET\t',
  '-',
  'PRI',
]

const targets = [
  '*',
  '',
  '//',
  '///etc/passwd',
  '/../../etc/passwd',
  '/%2e%2e/%2e%2e/etc/passwd',
  '/%',
  '/%zz',
  '/%00',
  '/%ff%fe',
  '/metrics/',
  '/METRICS',
  '/metrics;a',
  '/metrics%2f',
  '/metrics%00',
  '/metrics?',
  '/metrics?a[]=1&a[__proto__]=2',
  `/metrics?${'a=1&'.repeat(3000)}`,
  '/\\..\\x',
  `/${'a'.repeat(10_000)}`,
  `/${'a/'.repeat(5000)}`,
  `/${'%41'.repeat(4000)}`,
  '/ healthz',

  'http://evil.example/metrics',
  'http://[::1',
  'javascript:alert(1)',
  'metrics',
  '/é',
  '/\u007F',

  '/__proto__',
  '/constructor',
  '/healthz#x',
  '/?{{7*7}}',
  '/$%7bjndi:ldap://x%7d',
  '/<script>',
]

const versions = [
  'HTTP/0.9',
  'HTTP/1.2',
  'HTTP/2.0',
  'HTTP/1.1x',
  'HTTPS/1.1',
  'HTTP/',
  'http/1.1',
  '',
]

const headers: Record<string, string> = {
  'no host': '',
  'two hosts': `${host}${host}`,
  'a host of nonsense': 'Host: \u0001\u0002\r\n',
  'a host of somebody else': 'Host: evil.example\r\n',
  'a header without a name': `${host}: x\r\n`,
  'a header without a colon': `${host}nonsense\r\n`,
  'a name with a space': `${host}X A: b\r\n`,
  'a space before the colon': `${host}Content-Length : 0\r\n`,
  'a folded header': `${host}X-A: b\r\n c\r\n`,
  'a zero byte': `${host}X-A: b\u0000c\r\n`,
  'a bare carriage return': `${host}X-A: b\rX-B: c\r\n`,
  'a header of 100 KB': `${host}X-A: ${'a'.repeat(100_000)}\r\n`,
  'five thousand headers': `${host}${'X-A: b\r\n'.repeat(5000)}`,
  'a negative length': `${host}Content-Length: -5\r\n`,
  'a length that is a word': `${host}Content-Length: many\r\n`,
  'a length beyond all': `${host}Content-Length: ${'9'.repeat(40)}\r\n`,
  'two lengths': `${host}Content-Length: 0\r\nContent-Length: 5\r\n`,
  'a length with a plus': `${host}Content-Length: +0\r\n`,
  'a length and chunks': `${host}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n`,
  'an unknown encoding': `${host}Transfer-Encoding: zpaq\r\n`,
  'an encoding twice': `${host}Transfer-Encoding: chunked, chunked\r\n`,
  'a hidden encoding': `${host}Transfer-Encoding:\u000Bchunked\r\n`,
  'an expectation': `${host}Expect: miracles\r\n`,
  'an upgrade to h2c': `${host}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n`,
  'an upgrade to a web socket': `${host}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n`,
  'a range': `${host}Range: bytes=9-1,-,5-\r\n`,
  'an unknown type': `${host}Accept: \u0007/\u0007;q=9\r\n`,
  'an encoding of nonsense': `${host}Accept-Encoding: ,,,;q=x\r\n`,
  'a login': `${host}Authorization: Basic ====\r\n`,
  'cookies of nonsense': `${host}Cookie: =;=;${'a=b;'.repeat(2000)}\r\n`,
  'where it says it comes from': `${host}X-Forwarded-For: ' OR 1=1\r\nX-Forwarded-Host: evil\r\n`,
}

const whole: Record<string, string | Buffer> = {
  nothing: '',
  'a line end': '\r\n',
  'a thousand line ends': '\r\n'.repeat(1000),
  'a word': 'hello',
  'half a request': 'GET /metr',
  'a request without its end': `GET /metrics HTTP/1.1\r\n${host}`,
  'line ends of Unix': 'GET /metrics HTTP/1.1\nHost: localhost\n\n',
  'line ends of old': 'GET /metrics HTTP/1.1\rHost: localhost\r\r',
  'a hello of TLS': Buffer.from('16030100a5010000a10303', 'hex'),
  'a preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'a command of Redis': '*1\r\n$4\r\nPING\r\n',
  'a greeting of SMTP': 'EHLO evil.example\r\n',
  'a proxy line': 'PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n',
  'a query of MySQL': Buffer.from('0300000003', 'hex'),
  'zero bytes': Buffer.alloc(2048),
  'all bytes': Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)),
  'a megabyte of nothing': Buffer.alloc(1_000_000, 0x20),
  'a body on a GET': `GET /metrics HTTP/1.1\r\n${host}${close}Content-Length: 5\r\n\r\nhello`,
  'a body that never comes': `POST /metrics HTTP/1.1\r\n${host}Content-Length: 5000\r\n\r\nx`,
  'a body of two megabytes': `POST / HTTP/1.1\r\n${host}Content-Length: 2000000\r\n\r\n${'x'.repeat(2_000_000)}`,
  'a body of JSON that is none': `POST / HTTP/1.1\r\n${host}${close}Content-Type: application/json\r\nContent-Length: 1\r\n\r\n{`,
  'chunks that are none': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
  'a negative chunk': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n`,
  'a chunk beyond all': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n${'f'.repeat(20)}\r\n`,
  'a chunk with an endless extension': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n1;${'a'.repeat(60_000)}\r\nx\r\n0\r\n\r\n`,
  'a request inside a request, by length': `POST / HTTP/1.1\r\n${host}Content-Length: ${inner.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
  'a request inside a request, by chunks': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n${inner}\r\n0\r\n\r\n`,
  'a request behind a GET with a body': `GET / HTTP/1.1\r\n${host}Content-Length: ${inner.length}\r\n\r\n${inner}`,
  'a hundred requests at once': get('/nowhere').replace(close, '').repeat(100),
}

export function badRequests(): BadInput<Buffer>[] {
  const lines: Record<string, string> = {
    ...named('method', methods, (method) => `${method} /metrics HTTP/1.1\r\n${host}${close}\r\n`),
    ...named('target', targets, get),
    ...named('version', versions, (version) => `GET /metrics ${version}\r\n${host}${close}\r\n`),
    ...Object.fromEntries(
      Object.entries(headers).map(([name, lines]) => [
        name,
        `GET /metrics HTTP/1.1\r\n${lines}${close}\r\n`,
      ]),
    ),
  }
  return Object.entries({ ...lines, ...whole }).map(([name, content]) => ({
    name: `a request: ${name}`,
    content: Buffer.from(content),
  }))
}

function named(
  what: string,
  values: readonly string[],
  write: (value: string) => string,
): Record<string, string> {
  return Object.fromEntries(
    values.map((value) => [`the ${what} ${JSON.stringify(value.slice(0, 40))}`, write(value)]),
  )
}

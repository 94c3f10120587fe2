/** What a service, or whatever answers in its place, may send back: whole HTTP answers as bytes. */
import type { BadInput } from './bad-input.ts'

/** An answer as it goes over the wire; a length that is not given is the true one. */
export function answerOf(body: string | Buffer, { status = '200 OK', headers = '' } = {}): Buffer {
  const bytes = Buffer.from(body)
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${bytes.length}\r\n${headers}connection: close\r\n\r\n`
  return Buffer.concat([Buffer.from(head), bytes])
}

const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`

const bodies: Record<string, string | Buffer> = {
  nothing: '',
  spaces: ' \n\t ',
  'a word': 'ok',
  null: 'null',
  true: 'true',
  'a number': '17',
  'a number beyond all': '1e999',
  'a text': '"items"',
  'an empty list': '[]',
  'a list of pages': '[{"items":[],"next":null}]',
  'an empty object': '{}',
  'items that are null': '{"items":null,"next":null}',
  'items that are an object': '{"items":{"0":{}},"next":null}',
  'items that are a text': '{"items":"none","next":null}',
  'items that are a number': '{"items":0}',
  'a next that is a number': '{"items":[],"next":7}',
  'a next that is an object': '{"items":[],"next":{"cursor":"a"}}',
  'a next that is a list': '{"items":[],"next":["a"]}',
  'a next that is true': '{"items":[],"next":true}',
  'keys of a prototype': '{"__proto__":{"items":[]},"constructor":{"prototype":{"items":[]}}}',
  'the page one level down': '{"data":{"items":[],"next":null}}',
  'the keys in capitals': '{"ITEMS":[],"NEXT":null}',
  'a page that ends early': '{"items":[{"metadata":{"uid":"paste/x/1"',
  'a page that ends inside a text': '{"items":["ab',
  'a page that ends inside an escape': '{"items":["\\u00',
  'a comma too many': '{"items":[],}',
  'two pages': '{"items":[],"next":null}{"items":[],"next":null}',
  'single quotes': "{'items':[]}",
  'a comment': '{"items":[]} // all',
  'NaN in it': '{"items":[NaN]}',
  'a byte order mark and half a page': '\uFEFF{"items":',
  'a web page': '<!doctype html><title>Sign in</title><h1>Sign in</h1>',
  'an XML document': '<?xml version="1.0"?><items/>',
  YAML: 'items: []\nnext: null\n',
  'a stream of lines': '{"items":[]}\n{"items":[]}\n',
  'a callback': 'callback({"items":[]})',
  'zero bytes': Buffer.alloc(4096),
  'bytes that are no UTF-8': Buffer.from([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
  'no UTF-8 inside a text': Buffer.concat([
    Buffer.from('{"items":"'),
    Buffer.from([0xc3, 0x28]),
    Buffer.from('"}'),
  ]),
  'UTF-16': Buffer.from('{"items":[],"next":null}', 'utf16le'),
  'gzip that nobody asked for': Buffer.from('1f8b08000000000000ffabae0500a0ee8e5d02000000', 'hex'),
  'an endless depth': deep,
  'an endless depth of items': `{"items":${deep.slice(0, 60_000)}`,
  'a control character in a text': '{"items":"\u0001"}',
  'a key a million long': `{"${'k'.repeat(1_000_000)}":1}`,
  'a text two million long': `"${'x'.repeat(2_000_000)}"`,
}

const ok = '{"items":[],"next":null}'
const heads: Record<string, string | Buffer> = {
  'no HTTP at all': 'SSH-2.0-OpenSSH_9.9\r\n',
  'an answer of TLS': Buffer.from('15030300020228', 'hex'),
  'only a line end': '\r\n',
  'a status that is a word': `HTTP/1.1 fine OK\r\n\r\n`,
  'a status of two digits': `HTTP/1.1 20 OK\r\n\r\n`,
  'a status of 999': answerOf(ok, { status: '999 What' }),
  'a status of 0': `HTTP/1.1 000 None\r\n\r\n`,
  'another protocol': `ICY 200 OK\r\n\r\n`,
  'HTTP of the future': `HTTP/9.9 200 OK\r\n\r\n${ok}`,
  'a head that ends early': 'HTTP/1.1 200 OK\r\ncontent-ty',
  'a body that ends early': `HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n${ok}`,
  'a negative length': `HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n${ok}`,
  'a length that is a word': `HTTP/1.1 200 OK\r\ncontent-length: all\r\n\r\n${ok}`,
  'two lengths': `HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 24\r\n\r\n${ok}`,
  'a length and chunks': `HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  'chunks that are none': `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n${ok}`,
  'a chunk without an end': `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n${ok}`,
  'an encoding that nobody knows': answerOf(ok, { headers: 'content-encoding: zpaq\r\n' }),
  'gzip that is none': answerOf(ok, { headers: 'content-encoding: gzip\r\n' }),
  'a header without its name': `HTTP/1.1 200 OK\r\n: value\r\n\r\n${ok}`,
  'a header with a zero byte': `HTTP/1.1 200 OK\r\nx-a: b\u0000c\r\n\r\n${ok}`,
  'a header of 200 KB': `HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(200_000)}\r\n\r\n${ok}`,
  'ten thousand headers': `HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(10_000)}\r\n${ok}`,
  'a redirect to nowhere': answerOf('', { status: '302 Found', headers: 'location: ::\r\n' }),
  'a redirect to a file': answerOf('', {
    status: '301 Moved',
    headers: 'location: file:///etc/passwd\r\n',
  }),
  'nothing new': answerOf('', { status: '304 Not Modified' }),
  'no content': 'HTTP/1.1 204 No Content\r\n\r\n',
  'another protocol from now on':
    'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
  'a teapot': answerOf(ok, { status: "418 I'm a teapot" }),
  'a 400 that is a web page': answerOf('<h1>Bad</h1>', { status: '400 Bad' }),
  'a 422 of the wrong shape': answerOf('{"detail":{"loc":7}}', { status: '422 No' }),
  'a 422 of nonsense': answerOf('{"detail":[null,7,{"loc":[[]],"msg":{}}]}', { status: '422 No' }),
  'a 500 with a stack': answerOf('Traceback (most recent call last):\n  File "x"', {
    status: '500 Oh',
  }),
  'a 500 of escapes': answerOf('\u001B[2J\u0007{"error":"\\u001b[31m"}', { status: '500 Oh' }),
  'a 502 of nothing': answerOf('', { status: '502 Bad Gateway' }),
  'a 503 until the year 9999': answerOf('', {
    status: '503 Later',
    headers: 'retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n',
  }),
  'a 503 until minus one': answerOf('', { status: '503 Later', headers: 'retry-after: -1\r\n' }),
  'a 503 until a number beyond all': answerOf('', {
    status: '503 Later',
    headers: `retry-after: ${'9'.repeat(400)}\r\n`,
  }),
  'a 504 of binary': answerOf(Buffer.alloc(300, 0x80), { status: '504 Slow' }),
}

/** In the form of HTTP, with nonsense inside. */
export function badBodies(): BadInput<Buffer>[] {
  return Object.entries(bodies).map(([name, body]) => ({ name, content: answerOf(body) }))
}

/** Whatever is inside: the answer itself is wrong. */
export function badHeads(): BadInput<Buffer>[] {
  return Object.entries(heads).map(([name, head]) => ({ name, content: Buffer.from(head) }))
}

/** The answer to a request for a token, likewise. */
export function badGrants(): BadInput<Buffer>[] {
  const grants = {
    'a token that is null': '{"token":null}',
    'a token that is empty': '{"token":""}',
    'a token that is a number': '{"token":5}',
    'a token that is a list': '{"token":["a"]}',
    'a token with a line end': '{"token":"a\\r\\nx-injected: 1"}',
    'a token with a zero byte': '{"token":"a\\u0000b"}',
    'a token beyond ASCII': '{"token":"žluťoučký"}',
    'a token of half a character': '{"token":"\\ud800"}',
    'a token of a megabyte': `{"token":"${'t'.repeat(1_000_000)}"}`,
    'no token': '{"access_token":"a"}',
    'a grant that is no JSON': 'token=a',
    'a grant that is a web page': '<html></html>',
  }
  return Object.entries(grants).map(([name, body]) => ({ name, content: answerOf(body) }))
}

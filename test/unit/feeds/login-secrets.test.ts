/** What stands between ⟦ and ⟧ is found in the text without them, and nothing else. */
import { expect, test } from 'vitest'
import { loginSpans } from '../../../src/feeds/login-secrets.ts'
import { markSpans } from '../../support/marked-spans.ts'
import type { Span } from '../../../src/feeds/secret-shapes.ts'

function dumpSpans(text: string): Span[] {
  return loginSpans(text, true)
}

test.each([
  'joe@a.example:⟦hunter22⟧',
  'see joe@a.example:⟦hunter22,⟧ and more',
  '1) joe@a.example | ⟦my own⟧',
  'https://x.example/a joe@a.example:⟦hun ter⟧',
  '"joe@a.example:⟦hunter22⟧", x',
  '(joe@a.example:⟦hunter22⟧)',
  'joe@a.example:⟦hunter22⟧:⟦https://x.example⟧',
  'joe@a.example:⟦|https://x.example⟧',
  'joe@a.example:⟦x⟧|https://y.example',
  'joe@a.example,⟦hunter22⟧',
  'joe@a.example\t⟦hunter22⟧',
  'joe@a.example - ⟦hunter22⟧',
  'joe@a.example - reader',
  'joe@a.example->⟦reader⟧',
  'joe@a.example:⟦hun ter⟧\nsee you',
  'see joe@a.example:")',
  'joe@a.example/⟦hunter22⟧',
  'see joe@a.example / ⟦P4ss!word⟧',
  'see joe@a.example / P4ssword',
  'joe@a.example | the words of a text',
  'joe@a.example:ann@b.example',
  'joe@a.example:https://x.example',
  'joe@a.example:2024-01-05 12:00',
  'joe@a.example: 12:30',
  'joe@a.example | Password: x',
  'git@github.com:acme/repo',
  'see git@github.com:acme',
  'x joe@a.example:/var/log',
  'joe@a.example:⟦/var/log⟧',
  'joe@a.example:⟦a1 ann@b.example:b2⟧',
  'joe@a.example:⟦"hunter22"⟧',
  'x joe@a.example:⟦hunter22⟧").',
])('a secret stands beside an address: %j', (text) => {
  expect(markSpans(loginSpans, text)).toBe(text)
})

test.each([
  'ftp://joe:⟦hunter22⟧@a.example/x',
  'ftp://joe:⟦p⟧@h',
  'ftp://joe:⟦p@ss/w⟧@a.example/x?y=@z',
  'ftp://joe:⟦hunter22⟧',
  'ftp://joe:8080/x',
  'ftp://joe:80',
  'ftp://joe:⟦hunter22⟧…',
  'ftp://joe:hunter22 x',
  'ftp://joe:⟦hunter?22⟧@a.example',
  'ftp://:⟦hunter22⟧@a.example',
  'https://⟦a1b2c3d4e5f6g7h8i9j0⟧@git.example/x',
  'https://abcdefghijklmnopqrst@git.example',
  'https://a1b2c3d4e5f6g7h8i9j@git.example',
  'https://a1b2c3d4e5f6g7h8i9.j0@git.example',
  'joe:⟦hunter22⟧@10.0.0.1',
  'joe:hunter22@db',
  'joe:ab@10.0.0.1',
  'xjoe/joe:hunter22@10.0.0.1',
])('a secret stands within an address: %j', (text) => {
  expect(markSpans(loginSpans, text)).toBe(text)
})

test.each([
  'https://a.example/in:joe:⟦hunter22⟧',
  'https://a.example/in|joe|⟦hun|ter 22⟧',
  'https://a.example/in,joe,⟦hunter22⟧',
  'https://a.example/in,joe,hun,ter',
  'a.example:8080:joe:⟦hunter22⟧',
  'a.example : joe : ⟦hunter 22⟧ ',
  'a.example:5432:db:⟦joe:hun:ter⟧',
  '1. a.example;joe;⟦hunter22⟧',
  'a.example:joe:12:30',
  'a:b:c',
  'https://a.example/in joe1 ⟦hunter22⟧',
  'https://a.example/in joe hunter22',
  'see https://a.example/in joe1 hunter22',
  String.raw`1.2.3.4:3389@D\joe;⟦a b⟧`,
  'see 1.2.3.4:3389@D;⟦hun⟧ ter',
  'https://a.example/in joe1 reader',
  '"joe@a.example";"⟦hunt;er22"⟧',
  '"joe@a.example","reader"',
  '"joe@a.example","⟦hunter22"⟧',
  '"joe@a.example":"a":⟦"b"⟧',
  '"joe@a.example";"hunter22" y',
  'x in a.example:joe:⟦hunter22,⟧ y',
  'x a.example:joe:12',
  'x a.example:joe://x',
  'joe:hunter22',
  'joe:⟦hunter22⟧\nann:⟦letmein⟧',
  'joe:hun ter22\nann:letmein\nbob:x y1',
  'joe:my words\nann:⟦letmein⟧\nbob:⟦abc⟧',
  'admin:⟦hunter22⟧',
  `admin:⟦${'x'.repeat(3_994)}⟧`,
  `admin:${'x'.repeat(3_995)}`,
  'admin:abc',
  'admin:hunter 22',
  'md5:abcdef\nann:letmein',
  'admin:⟦password⟧\nroot:⟦toor1⟧',
  '{"password":"x"}:y\nann:b1',
  'joe:12:30\nann:12',
  'joe: x\nann: y',
  'joe://x\nann://y',
  'a:/etc\nb:/usr',
  ' - joe:⟦hunter22⟧\r\n2) ann:⟦letmein⟧',
])('a secret ends a line that names its site or login: %j', (text) => {
  expect(markSpans(loginSpans, text)).toBe(text)
})

test.each([
  'joe:⟦hunter22⟧',
  'joe|⟦hunter22⟧',
  'joe;⟦hunter 22⟧',
  'joe\t⟦hunter22⟧',
  'a.example:8080',
  'a.example:8080/x',
  'a.example:⟦8080x⟧',
  'joe:⟦a.b:80⟧',
  '00:1A:2B:3C:4D:5E',
  'fe80::1',
  '2001:db8:0:0:0:0:0:1',
  'sha-256:abcd',
  String.raw`C:\x`,
  'c:/x',
  'c:⟦a/b⟧',
  'joe:⟦/var⟧',
  'c:⟦x⟧',
  'login:password',
  'user:password ',
  '{"id":"joe","password":"hunter22"}',
  'Host:frankfurt',
  'password:x',
  'admin:⟦password⟧',
  'admin:⟦x⟧',
  'joe:12',
  'joe:⟦123⟧',
  'joe:12:3',
  'joe://x',
  'joe:⟦hunter22⟧  ',
])('in a dump one line is enough: %j', (text) => {
  expect(markSpans(dumpSpans, text)).toBe(text)
})

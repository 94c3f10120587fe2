/** What stands between ⟦ and ⟧ is found in the text without them, and nothing else. */
import { expect, test } from 'vitest'
import { maskText, spokenSpans } from '../../../src/masking/masking.ts'
import { markSpans } from '../../support/marked-spans.ts'

test.each([
  'mysql --password ⟦abcd⟧',
  'the password abcd',
  'the password ⟦hunter22⟧, x',
  'enable secret 5 ⟦$1$ab⟧',
  "pass '⟦hunter22⟧' x",
  'token "⟦abcd1234⟧"',
  'password -x1y2z',
  'password a=b1c2',
  'db_password ⟦hunter22⟧',
  'xpassword hunter22',
  '--token abc',
  'creds joe:⟦hunter22⟧',
  'login is joe|⟦abc⟧',
  "identified by '⟦hun''ter⟧'",
  'mysql -u root -p⟦hunter22⟧',
  "sshpass -p '⟦hun ter⟧' ssh",
  'curl -u joe:⟦hunter22⟧ x',
  'curl -u "joe:⟦hun ter⟧" x',
  'curl -u joe:⟦hunter22⟧ -H "accept: a"',
  'curl -u "joe:⟦hunter22⟧ x',
  'smbclient -U joe%⟦hunter22⟧ x',
  'redis-cli -h a -a ⟦hunter22⟧',
  'net use x /user:joe ⟦hunter22⟧',
  '/u:joe /p:⟦hunter22⟧',
  'echo ⟦hunter22⟧ | sudo -S',
  'login joe password ⟦hunter22⟧',
  'U: joe P: ⟦hunter22⟧',
  'Bearer ⟦abcd1234efgh5678⟧',
  'Bearer abcd1234efgh567',
  'htpasswd -b f joe ⟦hunter22⟧',
  'auth = ("joe", "⟦hunter22⟧")',
  'ldapsearch -w ⟦hunter22⟧',
  "identified by 'password'",
  'login("joe", "null")',
  'AUTH PLAIN ⟦AGpvZQBodW50ZXIyMg==⟧',
])(
  'a word behind a command, an option or a label is a secret where it reads as one: %j',
  (text) => {
    expect(markSpans(spokenSpans, text)).toBe(text)
  },
)

test.each([
  'CREDS joe:⟦hunter22⟧',
  'AUTH = ("joe", "⟦hunter22⟧")',
  "Identified BY '⟦hun ter⟧'",
  "CREATE USER joe IDENTIFIED WITH sha2 BY '⟦hun ter⟧'",
  "using password '⟦hun ter⟧'",
  'mysqldump db -p⟦hun⟧ && ls',
  'NET USE x /USER:joe ⟦hunter22⟧',
  'net use x /u:joe ⟦hunter22⟧',
  '/U:joe /P:⟦hunter22⟧',
  'sqlplus scott/⟦tiger⟧@db',
  'SQLPLUS scott/⟦tiger⟧@db',
  'jdbc:oracle:thin:scott/⟦tiger⟧@db',
  'https://a.example/x?sig=⟦abcdefghijklmnop⟧&y=1',
  'https://a.example/x?y=1&X-Amz-Signature=⟦abcdefghijklmnop⟧',
  'https://a.example/x?sig=abcdefghijklmno',
  '{"auth": "⟦am9lOmh1bnRlcjIy⟧"}',
  String.raw`{\\"auth\\":\\"⟦am9lOmh1bnRlcjIy⟧\\"}`,
  'Unseal Key 1: ⟦abcdefghijklmnopqrst⟧',
  'Unseal Key 1: abcdefghijklmnopqrs',
  'getConnection("jdbc:x", "joe", "⟦hunter22⟧")',
  "new PDO('mysql:x', 'joe', '⟦hunter22⟧')",
  'new NetworkCredential("joe", "⟦hunter22⟧")',
  "HTTPBasicAuth('joe', '⟦hunter22⟧')",
  'ConvertTo-SecureString "⟦hunter22⟧" -AsPlainText',
  'convertto-securestring -string ⟦hunter22⟧',
  'ConvertTo-SecureString $plain',
  'snmp-server community ⟦abc⟧ RO',
  'SNMP-SERVER COMMUNITY ⟦abc⟧',
  'ssh root/⟦hunter#22⟧',
  'Administrator: ⟦hunter#22⟧',
  'root/hunter22',
  'root/hunter#',
  'Password\n⟦hunter22⟧\nhost',
  'x\n  senha\r\n  ⟦hunter#x⟧ ',
  'my password\nhunter22',
  'password\nhunter',
  'password\nhunter22 of joe',
  'LOGIN joe PASSWORD ⟦hunter22⟧',
  'THE PASSWORD ⟦hunter22⟧',
  'pass "⟦hunter22⟧"x',
  "pass ⟦hun2ter⟧'s",
  'password CHAR(20) password nvarchar(20)',
])('in any case of letters a secret is found where it stands: %j', (text) => {
  expect(markSpans(spokenSpans, text)).toBe(text)
})

test.each([
  'login:joe:%',
  'htpasswd -b users joe %',
  'mysql -u joe -p%',
  'sshpass -p % ssh joe@host',
  'curl -u joe:% http://a.example',
  'smbclient -U joe%% //host',
  'redis-cli -a %',
  'ldapsearch -w %',
  'net use z: /user:joe %',
  '/u:joe /p:%',
  'https://a.example/?sig=%&next=1',
  'Unseal Key 1: %',
  'ConvertTo-SecureString %',
  'snmp-server community %',
  'LOGIN joe PASSWORD %',
  'Bearer %',
  'U: joe P: %',
  'https://joe:%@a.example/',
  'https://%@a.example/',
  'https://a.example/login joe@b.example %',
  'joe:%@10.0.0.1',
])('of a secret of 3,000 characters nothing but the first and last one is visible: %j', (shape) => {
  const letters = 'abcdefghijkmnpqrstuvwxyz23456789'
  const secret = Array.from({ length: 3_000 }, (_, i) => letters[(i * i + 7 * i) % 31]).join('')
  const masked = maskText(shape.replace(/%(?!%)/u, secret))
  const pieces = Array.from({ length: 600 }, (_, i) => secret.slice(5 * i, 5 * i + 5))
  expect(pieces.filter((piece) => masked.includes(piece))).toEqual([])
})

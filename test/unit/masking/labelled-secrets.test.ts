/** What stands between ⟦ and ⟧ is found in the text without them, and nothing else. */
import { expect, test } from 'vitest'
import { labelledSpans, looksSecret } from '../../../src/masking/labelled-secrets.ts'
import { markSpans } from '../../support/marked-spans.ts'

test.each([
  'password="""⟦hun ter22⟧""", host db1',
  "password='''⟦hun ter22⟧''', host db1",
  String.raw`password=\\"⟦hun ter22⟧\\", host db1`,
  String.raw`password=\"⟦hun ter22⟧\", host db1`,
  String.raw`password=\'⟦hun ter22⟧\', host db1`,
  'password="⟦hun ter22⟧", host db1',
  "password='⟦hun ter22⟧', host db1",
  'password=`⟦hun ter22⟧`, host db1',
  'password=“⟦hun ter22⟧”, host db1',
  'password=„⟦hun ter22⟧“, host db1',
  'password=«⟦hun ter22⟧», host db1',
  'password="⟦a password: hunter22⟧" of joe',
  'password=‘⟦hun ter22⟧’, host db1',
  'password=「⟦hun ter22⟧」, host db1',
  'password=『⟦hun ter22⟧』, host db1',
  'password=&quot;⟦hun ter22⟧&quot;, host db1',
  'password=&#39;⟦hun ter22⟧&#39;, host db1',
  'password=&#34;⟦hun ter22⟧&#34;, host db1',
  'password=%22⟦hun ter22⟧%22, host db1',
  'password="⟦hun""ter""22⟧", host db1',
  'password="⟦hun""⟧", host db1',
  "curl -d 'password=' https://shop.example/login then hunter22",
])('a secret ends with its quotes: %j', (text) => {
  expect(markSpans(labelledSpans, text)).toBe(text)
})

test.each([
  'password = """\n⟦line one\nline two⟧\n"""\nport',
  "password = '''\n  ⟦a b⟧\n'''",
  'secret = """\nabc\n"""',
  'password: |\n  ⟦line one\n  line two⟧\nuser: joe',
  '- password: >-\n    ⟦one\n\n    two⟧\n  user: joe',
  'x password: |\n  one two three four five',
  `x password: |\n  one two three four five ${'six '.repeat(30)}`,
  'password: | \n  ⟦line one⟧',
  'password: |\nx: y',
  'password: |\n  -----BEGIN RSA PRIVATE KEY-----\n  abc',
  'password = ⟦"""⟧\n \n"""',
  'password = """null"""',
  'Password:\nprocess.env.X',
  'Password:\n\n\n\n\nhunter22',
  'Password:\n⟦hunter22⟧\nhost',
  'Password:\n\n⟦hunter22⟧',
  'Password:\r\n\r\n  ⟦hunter22⟧  \r\nx',
  'Password:\n\n\n⟦hunter22⟧',
  'Password:\n```txt\n⟦hunter22⟧\n```',
  'Password:\nhttps://a.example/x',
  'Password:\nUser:',
  'Password:\nhun ter 22x yes',
  'Password:\n⟦h2ter a b c⟧',
  'Password:\nh2ter a b c d',
  'Password -\nhunter22',
  'Password - \nhunter22',
  'Password |\nhunter22',
  'api_key:\nabcd1234',
  'token:\nhunter22',
  'secret:\nhunter22',
  '{\npassword: ⟦x} y⟧',
  'user: joe\nsecret: ⟦hunter⟧',
  `user: ${'x'.repeat(298)}\nsecret: ⟦hunter⟧`,
  `user: ${'x'.repeat(299)}\nsecret: hunter`,
])('of several lines: %j', (text) => {
  expect(markSpans(labelledSpans, text)).toBe(text)
})

test.each([
  '?a=1&password=⟦a⟧ b',
  '?x=1&amp;pwd=⟦ab⟧#y',
  "?pwd=⟦ab'c⟧ d",
  '?token=⟦ab⟧…',
  `?token=⟦${'a'.repeat(5_000)}⟧`,
  '#token=⟦ab⟧&x',
  'password=⟦a&b=c⟧',
])('in a query it ends with its parameter, and nowhere else: %j', (text) => {
  expect(markSpans(labelledSpans, text)).toBe(text)
})

test('however long the value of a query is, it ends with its parameter', () => {
  const long = 'a'.repeat(4_500)
  const inText = `?id_token=⟦${long}⟧&state=x then prose`
  expect(markSpans(labelledSpans, inText)).toBe(inText)
  const two = `?token=⟦${long}⟧ and ?token=⟦${'a'.repeat(3_999)}…${long}⟧`
  expect(markSpans(labelledSpans, two)).toBe(two)
})

test.each([
  'a {password: "⟦hello⟧" world}',
  '"{password: ⟦hunter22⟧", "x"',
  '{password: ⟦hunter22⟧, user: joe}',
  '{password: ⟦hun, ter22⟧}',
  '{user: joe, password: ⟦hunter22⟧}',
  '{user: joe), password: ⟦hunter22⟧}',
  'password: ⟦hun", ter⟧',
  '[password: ⟦hunter22⟧", "x"]',
  '{password: ⟦hunter22⟧", "x"]',
  '(password: ⟦hunter22⟧) x',
  '(password=⟦hunter22⟧, user=joe)',
  `(password: ⟦${'a '.repeat(499)}b⟧) x`,
  `(password: ⟦${'a '.repeat(500)}b) x⟧`,
  '[password: ⟦hunter22⟧] x',
  '[a] password: ⟦hunter22] x⟧',
  '{a}password: ⟦x}y z⟧',
  '{secret: ⟦hunter⟧}',
  '"password": "⟦hunter22⟧"',
  '[password]: ⟦hunter22⟧',
])('what is around the pair ends it: %j', (text) => {
  expect(markSpans(labelledSpans, text)).toBe(text)
})

test.each([
  'Password: "⟦hello⟧" user: joe',
  'login: x password: ⟦y z⟧ host: w',
  'password: ⟦y z host: w⟧',
  'user=joe password=⟦a b⟧ host=db1',
  'password=⟦ab⟧;user=joe',
  'pwd=⟦ab⟧;user=joe',
  'password: ⟦ab⟧; user: joe',
  'password=⟦a;b!user=joe⟧',
  'user=joe password=⟦a b!host=db1⟧',
  'password: ⟦ab⟧ | user: joe',
  'password: ⟦ab⟧<br>user: joe',
  'password: ⟦ab⟧<BR>user: joe',
  'login=x password=<BR>user=y',
  'password: ⟦x⟧\nmore words\n  user: joe',
  'password: ⟦ab | cd ef⟧',
  'password: ⟦ab⟧ - user: joe',
  'password: ⟦ab⟧   user: joe',
  '| password | ⟦hunter22⟧ | rome |',
  'password | user | host',
  '| password | --- |',
])('another label ends it: %j', (text) => {
  expect(markSpans(labelledSpans, text)).toBe(text)
})

test.each([
  'api_key: ⟦abcd1234⟧ is new',
  'password is ⟦hunter22⟧. Then go',
  'password is ⟦hunter⟧, and more',
  'PASSWORD IS ⟦hunter22⟧. Then go',
  'PASSWORD IS ⟦Summer⟧',
  'password is required',
  'password is ⟦Summer⟧',
  'password is common knowledge',
  'password is "⟦hun a••••b⟧"',
  'password is ⟦Houston⟧',
  'the password was leaked by joe',
  'das Passwort lautet ⟦Sommer2024⟧. Danke',
  'das Passwort ist geheim',
])('behind a verb it ends with its sentence: %j', (text) => {
  expect(markSpans(labelledSpans, text)).toBe(text)
})

test.each([
  'password: ⟦ab${VAR}⟧',
  'password: ⟦${VAR}ab1⟧',
  'password: ⟦%(x)sab⟧',
  'password: ⟦nullable⟧',
  'password: ⟦x os.environ⟧',
  'password: ⟦$X_⟧',
  'password: %s',
  'password: $1',
  'password: #{x}',
  'password: !Ref x',
  'password: %PASS%',
  'password: <your password>',
  'password: ⟦<your>x⟧',
  'password = z.string()',
  'password = ⟦zz.string9⟧',
  'password: <redacted>',
  'password: ⟦x1 must have⟧',
  'PIN: ⟦1234⟧',
  'PIN: 12',
  'PIN: 12a4',
  'cookie: ⟦a=b; c⟧',
  'Cookie: yes',
  'Set-Cookie: ⟦sid9⟧',
  'Passwords: 120 of them',
  'Passwords: 1,200',
  'Passwords: ⟦hunter22⟧',
  'passwords: one two three four five six',
  'Passwörter: 40k',
  'credentials: 5',
  'password: null',
  'password: NULL',
  `password: ${'*'.repeat(250)}`,
  `password: ⟦${'*'.repeat(251)}⟧`,
  'password: ${PASSWORD}',
  'password: {{ vault }}',
  'password = os.environ["X"]',
  'password = :password',
  'password = $pass',
  'password: ********',
  'password: h••••2',
  'password: S-1-5-21-3623',
  'password: https://a.example/x',
  'password: ⟦hunter22 https://a.example/x⟧',
  'password: must have 12 letters',
  'password = getpass()',
])('what stands where a secret would is judged by its form: %j', (text) => {
  expect(markSpans(labelledSpans, text)).toBe(text)
})

test.each([
  'Password: ⟦"hello" world⟧',
  `Password: ⟦"hello"${' '.repeat(19)}world⟧`,
  `Password: "⟦hello⟧"${' '.repeat(20)}world`,
  'city: db1 Password: "⟦hello⟧" world',
  'password:"⟦hello⟧" world',
  'Password: "⟦hello⟧", world',
  'password = """⟦one line⟧"""',
  'Authorization: Bearer ⟦abcd1234efgh⟧',
  'Authorization: ⟦abcd⟧',
  'Authorization: "⟦abcd ⟧"',
  'Authorization: ⟦a1=b Bearer c⟧',
  'Authorization: ⟦abcd1234 was leaked⟧',
  'Authorization: digest ⟦username="x", response="y"⟧',
  'Authorization-Token: Bearer ⟦abcd1234⟧',
  'authorization_header: AWS4-HMAC-SHA256 ⟦Credential=a, Signature=b⟧',
  'authorization_code: ⟦abc123def⟧ was leaked',
  'authorization_code: ⟦Bearer⟧',
  'AUTHORIZATION_TOKEN=⟦abc123⟧ yarn deploy',
  'authorization_pin: required by the bank',
  'authorization_pin: ⟦1234⟧',
  'authorization_server: idp.example runs the old release',
  'api_key=⟦abcd1234⟧). And',
  `api_key=⟦ab1${')'.repeat(10)}⟧${')'.repeat(20)} x`,
  'token: ...',
  "-H 'X-Api-Key: ⟦abcd1234⟧' -d x",
  '-d "password=⟦hun ter22⟧" next',
  'PGPASSWORD=⟦hunter22⟧ psql -h db1',
  'PGPASSWORD=⟦hunter22 hello⟧',
  '--password=⟦hunter22⟧ --host db1',
  '--password=⟦a⟧',
  'password: ⟦ab⟧, "user": "joe"',
  'password\t⟦hunter22⟧\trome',
  'secret: hunter',
  'secret: ⟦hunter22⟧',
  'secret=⟦hunter⟧',
  'my secret=hunter',
  'a secret=hunter',
  'secret: "⟦hunter⟧"',
  'secret: ⟦one two three four five hunter22⟧',
  'token: one hunter22',
  'password: "⟦https://a.example/x⟧"',
  'Password for root: ⟦hunter22⟧',
  'Password for root:⟦hunter22⟧',
  'Password for root：⟦-hunter22⟧',
  'Password for root → ⟦hunter22⟧',
  'Password for root＝⟦hunter22⟧',
  'Password [Chrome] ⇒ ⟦hunter22⟧',
  'Password for root是⟦-hunter22⟧',
  'Password for my token: ⟦abcd1234⟧ x y',
  'Password for https://a.example/x',
  '{Password for root: ⟦hunter22⟧} joe',
  'Password [Chrome]: ⟦hunter22⟧',
  'Password found: ⟦hunter22⟧',
  'Passwort von joe: ⟦hunter22⟧',
  'password for a b c d: ⟦ab12⟧',
  'Password for joe is ⟦hunter22⟧',
  'Password for joe is: ⟦hunter22⟧',
  'Password for joe\t=⟦hunter22⟧',
  'Das Passwort von joe ist ⟦hunter22⟧. Danke',
  'The password for the admin portal is required',
  'Das Passwort von joe ist geheim',
  'Clave de joe: hola',
  'Clave de joe: ⟦hola22⟧',
  '**Password:** ⟦hunter22⟧',
  '<b>Password:</b> ⟦hunter22⟧</b> x',
  'password (in words): ⟦hunter22⟧',
  'password&quot;: ⟦hunter22⟧',
  '%22password%22:%22⟦hunter22⟧%22',
  'password=“⟦ab⟧” c',
  'password=⟦"hunter 22⟧\nhost "x", y',
  'password="⟦a"b⟧", host db1',
  `password="⟦${'x"y'.repeat(19)}⟧", host db1`,
  `password=⟦"${'x"y'.repeat(20)}", host db1⟧`,
  'password="⟦say "hi" bob⟧" x',
  "password='⟦it''s⟧' x",
  String.raw`password="⟦a\"b⟧" x`,
  String.raw`password="⟦a\\⟧" x`,
  '密码是⟦hunter22⟧',
  '密码：⟦hunter22⟧',
  'пароль — ⟦hunter22⟧',
  'password - ⟦hunter22⟧',
  'password - ⟦hunter22 x⟧',
  'Password - token: ⟦abcd1234⟧',
  'password: ⟦secret: hunter22⟧',
  'secret - hunter22',
  'secret\thunter22',
  `password${' '.repeat(24)}: ⟦hunter22⟧`,
  `password${' '.repeat(25)}: hunter22`,
  `password_${'x'.repeat(31)}: ⟦hunter22⟧`,
  `password_${'x'.repeat(40)}: hunter22`,
  'password - reset',
  'password – weak',
  'a password->⟦hunter22⟧',
  'password=>⟦hunter22⟧',
  'password:=⟦hunter22⟧',
  'password==⟦hunter22⟧',
  'password::⟦hunter22⟧',
  'password%3A⟦hunter22⟧',
  'password("⟦hunter22⟧")',
  'mot de passe: ⟦hunter22⟧',
  "parola d'ordine: ⟦x⟧",
  'api key: ⟦abcd⟧',
  'my api key: ⟦abcd1234⟧',
])('a label and its separator are written in many ways: %j', (text) => {
  expect(markSpans(labelledSpans, text)).toBe(text)
})

test.each([
  'token:github',
  'password:reset77',
  'token: ⟦abcd1234⟧',
  'token=⟦abcd1234⟧',
  'joe token:github',
])('in a tag, a name with a colon is how people write one: %j', (tag) => {
  expect(markSpans((text) => labelledSpans(text, true), tag)).toBe(tag)
})

test('of a cookie, and of nothing else, no character is shown', () => {
  expect(labelledSpans('Cookie: a=b')).toEqual([{ from: 8, to: 11, hidden: true }])
  expect(labelledSpans('password: a')).toEqual([{ from: 10, to: 11 }])
})

test('an address behind a label is looked through for a login for its first three hundred characters', () => {
  const address = `https://a.example/${'x'.repeat(281)}`
  expect(markSpans(labelledSpans, `password: ⟦${address}@⟧`)).toBe(`password: ⟦${address}@⟧`)
  expect(markSpans(labelledSpans, `password: ${address}x@`)).toBe(`password: ${address}x@`)
})

test.each([
  ['hunter22', true],
  ['hunter', false],
  ['a1b', false],
  ['a1bc', true],
  ['"a1b"', false],
  ['("hunter22").', true],
  ['hunter!x', true],
  ['hunter!', false],
  ['a#%b', true],
  ['#%&*', false],
  ['~~~~', false],
  ['myHunter', true],
  ['myHunte', false],
  ['MYHUNTER', false],
  ['x'.repeat(23), false],
  ['x'.repeat(24), true],
  ['hunter hunter22', false],
  ['hunter22 x', true],
  ['https://a1.example', false],
  ['HTTP://a1', false],
  ['www.a1.example', false],
  ['xwww.a1', true],
  ['12:30:05', false],
  ['12.5%', false],
  ['12345', false],
  ['v1.2.3-rc1', false],
  ['1.2b', false],
  ['xv1.2', true],
])('the first word of %j looks like a secret: %s', (value, expected) => {
  expect(looksSecret(value)).toBe(expected)
})

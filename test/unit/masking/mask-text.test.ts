import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  cut,
  maskIdentity,
  maskKnown,
  maskTag,
  maskText,
  withoutMarks,
} from '../../../src/masking/masking.ts'
import { runs } from '../../support/runs.ts'

describe('a secret in free text is masked', () => {
  test.each([
    ['joe@example.com:hunter22', 'joe@example.com:h••••2'],
    ['joe@example.com:ab', 'joe@example.com:••••'],
    ['joe@example.com | hunter22', 'joe@example.com | h••••2'],
    ['joe@example.com,hunter22', 'joe@example.com,h••••2'],
    ['joe@example.com\thunter22', 'joe@example.com\th••••2'],
    ['https://site.example/login:joe:hunter22', 'https://site.example/login:joe:h••••2'],
    ['https://site.example:8443/a:joe:hunter22', 'https://site.example:8443/a:joe:h••••2'],
    ['site.example:joe:hunter:22', 'site.example:joe:h••••2'],
    ['site.example/in:joe@example.com:hunter22', 'site.example/in:joe@example.com:h••••2'],
    [
      'git clone https://a1b2c3d4e5f6g7h8i9j0k@git.example/x',
      'git clone https://a••••k@git.example/x',
    ],
    ['joe:hunter22@10.0.0.1 was seen', 'joe:h••••2@10.0.0.1 was seen'],
    ['joe@example.com:12345678', 'joe@example.com:1••••8'],
    ['mysql -u root --password abcd', 'mysql -u root --password ••••'],
    [
      'login,password\n"Doe, Joe","hunter,22"\n"Ann","letmein"',
      'login,password\n"Doe, Joe","h••••2"\n"Ann","l••••n"',
    ],
    [`define('DB_PASSWORD', 'hunter22');`, `define('DB_PASSWORD', 'h••••2');`],
    ['ftp://joe:hunter22@files.example/x', 'ftp://joe:h••••2@files.example/x'],
    ['Username: joe Password: hunter22', 'Username: joe Password: h••••2'],
    ['{"pass":"hunter22","x":1}', '{"pass":"h••••2","x":1}'],
    ['https://x.example/?a=1&token=abcdefgh&b=2', 'https://x.example/?a=1&token=a••••h&b=2'],
    ['Authorization: Bearer abcdefgh', 'Authorization: Bearer a••••h'],
    ['Set-Cookie: sid=abcdefgh; Path=/', 'Set-Cookie: ••••'],
    ['joe:hunter22\nann:letmein1', 'joe:h••••2\nann:l••••1'],
  ])('%j', (text, masked) => {
    expect(maskText(text)).toBe(masked)
  })

  test('in every line of a combolist', () => {
    const secret = fc.stringMatching(/^[a-zA-Z0-9!$%&*+?@#~]{12,20}$/)
    const entry = fc.record({ name: fc.stringMatching(/^[a-z]{1,8}$/), secret })
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 8 }), (entries) => {
        const text = entries.map((one) => `${one.name}@mail.example:${one.secret}`).join('\r\n')
        const masked = maskText(text)
        for (const one of entries) {
          expect(masked).not.toContain(one.secret)
          expect(masked).toContain(`${one.name}@mail.example:`)
        }
      }),
    )
  })
})

test.each([
  'seen at 12:30 and 2026-01-05T12:30:45Z',
  'open ports\n10.0.0.1:8080\nvpn.example.com:443',
  'see https://example.com/a?b=c, or write to joe@example.com, please',
  'https://one.example\nhttps://two.example',
  'the token economy; a secret garden',
  'password: "   "',
  'Please choose a new password at https://acme.example/reset.',
  'Das Passwort: muss mindestens 12 Zeichen lang sein.',
  'Der Angreifer nutzte gestohlene Passwörter: laut Bericht waren 40 Konten betroffen.',
  'IBAN: DE89 3704 0044 0532 0130 00, tracking 1234 5678 9012 3456',
  'joe@acme.example - CEO of ACME since 2019',
  'the report covers user/profile2 and admin/index.php?id=4',
  'https://acme.example:8443;https://b.example:443',
  'La clave es la paciencia: es ist jetzt 12:30 Uhr',
])('what holds no secret stays: %j', (text) => {
  expect(maskText(text)).toBe(text)
})

test.each([
  String.raw`C:\Users\joe\AppData\Local\Temp\build.exe`,
  '00:1A:2B:3C:4D:5E',
  'fe80::1ff:fe23:4567:890a',
  'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  'mailto:joe@acme.example',
  'acme.example:8443/login',
])('what tells an infection or its site stays in a dump as well: %j', (text) => {
  expect(maskText(text, true)).toBe(text)
})

describe('whoever and wherever stays readable', () => {
  test.each([
    ['login: x password: y z host: w', 'login: x password: •••• host: w'],
    [
      '{"user":"joe","password":"a b","host":"db1"}',
      '{"user":"joe","password":"••••","host":"db1"}',
    ],
    [
      'Server=db1;User Id=sa;Password=hun ter 2;Database=x',
      'Server=db1;User Id=sa;Password=h••••2;Database=x',
    ],
    ['PGPASSWORD=hunter22 psql -h db1 -U joe', 'PGPASSWORD=h••••2 psql -h db1 -U joe'],
    ['postgres://joe:p@ss/word@db.example:5432/x', 'postgres://joe:p••••d@db.example:5432/x'],
    ['redis://:hunter22@cache:6379', 'redis://:h••••2@cache:6379'],
    ['1.2.3.4:8080:joe:hunter22', '1.2.3.4:8080:joe:h••••2'],
    [
      '-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nof joe',
      '-----BEGIN PRIVATE KEY-----••••-----END PRIVATE KEY-----\nof joe',
    ],
    ['user,password\njoe,hunter22\n\nhost db1', 'user,password\njoe,h••••2\n\nhost db1'],
    ['User SID: S-1-5-21-36238110-1000', 'User SID: S-1-5-21-36238110-1000'],
  ])('%j', (text, masked) => {
    expect(maskText(text)).toBe(masked)
  })
})

test.each([
  ['Password: Tr0ub4dor&3-horse,ZEBRA', 'Password: T••••A'],
  ['alice@example.com:pass word 123', 'alice@example.com:p••••3'],
  ['Password: "say "hi" bob"', 'Password: "s••••b"'],
  ["password='it''s a secret'", "password='i••••t'"],
  ['?password=a&b=c', '?password=••••&b=c'],
  ['pass\u00ADword: hunter22', 'password: h••••2'],
  ['<mark>pass</mark>word: hun<mark>ter</mark>22', 'password: h••••2'],
])('a password leaves no tail: %j', (text, masked) => {
  expect(maskText(text)).toBe(masked)
})

/** Found in texts that nobody had tuned the masks to. */
test.each([
  ['das neue Kennwort lautet: Kaffee-Tasse9', 'das neue Kennwort lautet: K••••9'],
  ['das Passwort lautet Winter2024! bitte', 'das Passwort lautet W••••e'],
  ['PW ist jetzt Sommer#2025', 'PW ist jetzt S••••5'],
  ['Neues Passwort für SAP ab Montag = Herbst_2025!', 'Neues Passwort für SAP ab Montag = H••••!'],
  ['WLAN-Schlüssel: 4711-Koeln-Dom', 'WLAN-Schlüssel: 4••••m'],
  ["le mdp c'est Marseille13!", "le mdp c'est M••••!"],
  ['Clave de acceso: Qwe.123*', 'Clave de acceso: Q••••*'],
  ['clave del wifi: GatoNegro_7', 'clave del wifi: G••••7'],
  ["parola d'ordine: Vesuvio79!", "parola d'ordine: V••••!"],
  ['La password è Pizza!Roma1', 'La password è P••••1'],
  ['a senha agora é Praia#2024', 'a senha agora é P••••4'],
  ['Пароль от админки — Медведь!77', 'Пароль от админки — М••••7'],
  ['账号 admin 密码 Zg2024!abc', '账号 admin 密码 Z••••c'],
  ['Name: cardNumber\nValue: 4111111111111111', 'Name: cardNumber\nValue: 4••••1'],
  ['CardType: Visa\nCard: 4556737586899855', 'CardType: Visa\nCard: 4••••5'],
  ['paid with 4556 7375 8689 9855', 'paid with 4••••5'],
  [
    '- name: DB_PASSWORD\n  value: "s3cr3t-Pa55"\n- name: DB_HOST\n  value: db.example',
    '- name: DB_PASSWORD\n  value: "s••••5"\n- name: DB_HOST\n  value: db.example',
  ],
  [
    'password: >-\n  correct horse\n  battery staple\nuser: joe',
    'password: >-\n  c••••e\nuser: joe',
  ],
  [
    'password = """\nline one pw\nline two pw\n"""\nport = 5432',
    'password = """\nl••••w\n"""\nport = 5432',
  ],
  ['Key Content            : Br0adband Pw', 'Key Content            : B••••w'],
  [
    'jdbc:oracle:thin:scott/t1ger!x@db.example:1521:ORCL',
    'jdbc:oracle:thin:scott/t••••x@db.example:1••••L',
  ],
  [
    'jdbc:sqlserver://db.example:1433;user=sa;password={P;w=d}12;encrypt=true',
    'jdbc:sqlserver://db.example:1433;user=sa;password={••••2;encrypt=true',
  ],
  [
    '{"auths":{"r.example":{"auth":"am9lOmh1bnRlcjIyMjI="}}}',
    '{"auths":{"r.example":{"auth":"a••••="}}}',
  ],
  [
    'https://a.example/login joe@b.example hunter22!',
    'https://a.example/login joe@b.example h••••!',
  ],
  ['joe@a.example → hunter22', 'joe@a.example → h••••2'],
  ['joe@a.example - Hunter!22', 'joe@a.example - H••••2'],
  ['"joe@a.example";"hunt;er22"', '"joe@a.example";"h••••"'],
  [
    "INSERT INTO `users` VALUES (1,'joe','joe@a.example','5f4dcc3b5aa765d61d8327deb882cf99','active');",
    "INSERT INTO `users` VALUES (1,'joe','joe@a.example','5••••9','active');",
  ],
  ['* NTLM     : 8846f7eaee8fb117ad06bdd830b7586c', '* NTLM     : 8••••c'],
  [
    'joe::ACME:1122334455667788:A1B2C3D4E5F60718293A4B5C6D7E8F90:0101000000000000C0',
    'joe::ACME:1••••0',
  ],
  [
    '%7B%22user%22%3A%22joe%22%2C%22password%22%3A%22hunter%2122%22%7D',
    '%7B%22user%22%3A%22joe%22%2C%22password%22%3A%22h••••2%22%7D',
  ],
  [
    'https://a.example/cb#access_token=ya30.zzZZ11223344&expires_in=3599',
    'https://a.example/cb#access_token=y••••4&expires_in=3599',
  ],
  [
    'https://a.example/f.zip?sp=r&sig=Zm9vYmFyYmF6cXV4%2Babc%3D&se=2025',
    'https://a.example/f.zip?sp=r&sig=Z••••D&se=2025',
  ],
  [
    'ConvertTo-SecureString "P0w3r$hell!" -AsPlainText',
    'ConvertTo-SecureString "P••••!" -AsPlainText',
  ],
  ['snmp-server community pr1vateRW RW', 'snmp-server community p••••W RW'],
  ['domain admin: admin / Str0ng!Pass (citrix)', 'domain admin: admin / S••••s (citrix)'],
  ['selling admin:Hunter!22 @ vpn.example', 'selling admin:H••••2 @ vpn.example'],
  ['user\njoe@a.example\npassword\nHunter!22', 'user\njoe@a.example\npassword\nH••••2'],
  ['GITHUB_PAT=ghx_notprefix_998877', 'GITHUB_PAT=g••••7'],
  ['client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk=', 'client-key-data: L••••='],
  ['Unseal Key 1: Qm9vYmFyYmF6cXV4cXV1eA==', 'Unseal Key 1: Q••••='],
  [
    'new NetworkCredential("svc_backup", "C#rocks!1", "ACME")',
    'new NetworkCredential("svc_backup", "C••••1", "ACME")',
  ],
  [
    'getConnection("jdbc:mysql://db:3306/x", "root", "J@va;99")',
    'getConnection("jdbc:mysql://db:3306/x", "root", "J••••9")',
  ],
  [
    'usuario: jperez clave: Barcelona.2023 servidor: 10.2.3.4',
    'usuario: jperez clave: B••••3 servidor: 10.2.3.4',
  ],
])(
  'in the words of other tools and languages, too, a password is masked and its owner is not: %j',
  (text, masked) => {
    expect(maskText(text)).toBe(masked)
  },
)

test.each([
  [
    '1.2.3.4:3389@ACME\\Administrator;P@55word!\n1.2.3.5:3389@ACME\\joe;Sum!mer1',
    '1.2.3.4:3389@ACME\\Administrator;P••••!\n1.2.3.5:3389@ACME\\joe;S••••1',
  ],
  [
    '[{"origin":"https://a.example","user":"joe","pass":"Gr4v1ty,Falls"}]',
    '[{"origin":"https://a.example","user":"joe","pass":"G••••s"}]',
  ],
])('in a dump, what names the machine and the account stays: %j', (text, masked) => {
  expect(maskText(text, true)).toBe(masked)
})

/** Pieces of what the masks look for, in any order. */
const pieces =
  'password|: |=|=>| |\n|"|\'|&|?|joe|@acme.example|:|hunter22|Tr0ub4dor&3|<mark>|</mark>|{|}|(|)|,|;|\t|login: |token|api key|ghp_abcdefghijklmnopqrst|://|-----BEGIN PRIVATE KEY-----|-----END PRIVATE KEY-----|<b>|is |пароль|密码|••••|h••••2|\\"|12345|cookie: |Authorization: |Bearer |user,password|curl -u |values (|insert into a (password) |"name":"password"|"value":|…|password: >\n  |"""|- name: password\n  value: |4111 1111 1111 1111|card: | / |c\'est |getConnection("a", "b", "|"auth":"|&sig='.split(
    '|',
  )
const anyText = fc.oneof(
  fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 60 }),
)

test.each(
  Object.entries({
    maskText,
    maskDump: (text: string) => maskText(text, true),
    maskTag,
    maskIdentity,
  }),
)(
  'what is masked on its way into Redis is not masked again on its way out: %s is idempotent, and never throws',
  (_name, mask) => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(mask(mask(text))).toBe(mask(text))
      }),
      { numRuns: 1_000 },
    )
  },
)

test('a text that is cut before or after it is masked shows nothing of the secret', () => {
  const secret = fc.oneof(
    fc.stringMatching(/^[a-z]{4}[ &,'"#][A-Z]{4}[0-9]{4}$/),
    fc.stringMatching(/^(?:user|data|form|self|args)\.[A-Z]{4}[0-9]{4}$/),
  )
  const before = fc.constantFrom(
    'Password: ',
    'joe@acme.example:',
    'пароль=',
    'https://joe:',
    'pwd="',
  )
  fc.assert(
    fc.property(secret, before, fc.nat(40), (planted, label, at) => {
      const hidden = planted
        .replaceAll(label.startsWith('http') ? / /g : /$^/g, '_')
        .replaceAll(/["'#]/g, '.')
      const host = label.startsWith('http') ? '@acme.example/' : ''
      const text = `${label}${hidden}${host}`
      const parts = Array.from({ length: hidden.length - 3 }, (_none, at) =>
        hidden.slice(at, at + 4),
      )
      fc.pre(!parts.some((part) => `${label} ${host}`.includes(part))) // those are shown
      for (const shown of [maskText(cut(text, at)), cut(maskText(text), at)]) {
        expect(parts.filter((part) => shown.includes(part))).toEqual([])
      }
    }),
  )
})

const longText = runs({ short: 60_000, long: 250_000 })

test('a long text holds the daemon for a moment: the work grows with the length, not with its square', () => {
  const units = [
    'a',
    'a.',
    'a@',
    'a:',
    '@:',
    'pass',
    'a.b:',
    'a:b\n',
    "insert into t (password) values ('a'),('b');",
    '://a:',
    '\t',
    'x@y:',
    'password: "a ',
    'token:" "a ',
    '密码是',
    'Joe wrote: a lovely day. ',
  ]
  const slow: string[] = []
  for (const unit of units) {
    const quarter = cpuMsOf(unit, longText / 4)
    const whole = cpuMsOf(unit, longText)
    process.stdout.write(
      `${longText / 1_000} kB of ${JSON.stringify(unit)}: ${Math.round(whole)} ms of CPU, ${(whole / quarter).toFixed(1)} times a quarter of it\n`,
    )
    if (whole > 8 * Math.max(quarter, longText / 12_500)) slow.push(unit)
  }
  expect(slow).toEqual([])
})

/** Time of this thread on the processor, the least of two: others on the machine do not count. */
function cpuMsOf(unit: string, length: number): number {
  const text = unit.repeat(Math.ceil(length / unit.length))
  const measured = [1, 2].map(() => {
    const before = process.threadCpuUsage()
    maskText(text, true)
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1_000
  })
  return Math.min(...measured)
}

test('of known secrets that hold one another nothing stays, whichever is named first', () => {
  for (const secrets of [
    ['winter', 'winter2024!'],
    ['winter2024!', 'winter'],
  ]) {
    expect(maskKnown(secrets)('new: winter2024!, old: winter')).toBe('new: w••••!, old: w••••r')
  }
})

test('a mark is found in any case of letters, and however many other tags stand before it', () => {
  expect(withoutMarks('pass<MARK>word</MARK>')).toBe('password')
  expect(withoutMarks(`${'<i>'.repeat(300)}pass<mark>word</mark>`)).toBe(
    `${'<i>'.repeat(300)}password`,
  )
})

test.each([
  ['token:github', 'token:github'],
  ['password:reset77', 'password:reset77'],
  ['password: hunter22', 'password: h••••2'],
  ['password=hunter22', 'password=h••••2'],
  ['joe@acme.com:hunter22', 'joe@acme.com:h••••2'],
])('of the tag %j stays %j: a name before a colon says of what kind it is', (tag, shown) => {
  expect(maskTag(tag)).toBe(shown)
})

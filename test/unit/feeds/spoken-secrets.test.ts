/** What stands between ⟦ and ⟧ is found in the text without them, and nothing else. */
import { expect, test } from 'vitest'
import { spokenSpans } from '../../../src/feeds/spoken-secrets.ts'
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

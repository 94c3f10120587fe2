/**
 * Secrets in the surroundings in which leaks show them, and texts that hold none: templates written by
 * hand, filled with made-up values from a fixed seed. `§` is the place of the secret.
 */

export interface Planted {
  text: string
  /** As it stands in the text. */
  secret: string
  isDump: boolean
  template: string
}

interface Group {
  /** What is put in: any text a person might choose, one without white space, or a machine's. */
  secrets: readonly (() => string)[]
  write?: (secret: string) => string
  isDump?: boolean
  templates: readonly string[]
}

/** The same numbers in every run. */
function seeded(seed: number): <T>(values: readonly T[]) => T {
  let state = seed
  return (values) => {
    state = (state + 0x6d2b79f5) | 0
    const mixed = Math.imul(state ^ (state >>> 15), state | 1)
    const drawn = mixed ^ (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61))
    return values[((drawn ^ (drawn >>> 14)) >>> 0) % values.length]!
  }
}

const pick = seeded(20_261_122)
const letters = Array.from('abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789')
const hexDigits = Array.from('0123456789abcdef')

function chars(count: number, from: readonly string[] = letters): string {
  return Array.from({ length: count }, () => pick(from)).join('')
}

const words =
  'horse staple battery zebra sunset dragon monkey Berlin Quarz ночь мост 猫咪 naïve façade Zürich ñandú tiger maple'.split(
    ' ',
  )
const symbols = Array.from('!#$%&*+?@~^,.-_:;/=')

function compact(): string {
  return pick([
    () => `${pick(words)}${pick(symbols)}${chars(4)}`,
    () => `${chars(3)}${pick(symbols)}${pick(words)}${pick(symbols)}${chars(2)}`,
    () => `${pick(words)}${chars(2)}&${pick(words)}`,
    () => `${pick(words)}'${chars(4)}"${chars(3)}`,
    () => `Tr0ub4dor&3-${pick(words)},${chars(3)}`,
    () => `${chars(10)}`,
    () => `${pick(words)}${pick(words)}${chars(2)}`,
  ])()
}

function phrase(): string {
  return pick([
    () => `${pick(words)} ${pick(words)} ${pick(words)} ${chars(3)}`,
    () => `${pick(words)}, ${pick(words)} & ${chars(5)}`,
    () => `my "${pick(words)}" ${chars(4)}`,
    () => `${pick(words)}'s ${pick(words)} ${pick(symbols)} ${chars(3)}`,
    () => `${chars(5)} pass:${pick(words)}`,
    () => `${chars(3)}; ${pick(words)} | ${chars(4)}`,
    () => `<${pick(words)}> ${chars(5)}`,
    compact,
    compact,
    compact,
  ])()
}

/** In tokens and URLs as their issuers write them. */
const machineMade: readonly (() => string)[] = [
  () => `ghp_${chars(36)}`,
  () => `github_pat_${chars(22)}_${chars(59)}`,
  () => `glpat-${chars(20)}`,
  () => `AKIA${chars(16, Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'))}`,
  () =>
    `xoxb-${chars(12, Array.from('0123456789'))}-${chars(12, Array.from('0123456789'))}-${chars(24)}`,
  () => `xapp-1-${chars(11)}-${chars(13, Array.from('0123456789'))}-${chars(40, hexDigits)}`,
  () => `sk_live_${chars(24)}`,
  () => `AIza${chars(35)}`,
  () => `npm_${chars(36)}`,
  () => `pypi-AgEIcHlwaS5vcmc${chars(60)}`,
  () => `SG.${chars(22)}.${chars(43)}`,
  () => `hvs.${chars(95)}`,
  () => `dop_v1_${chars(64, hexDigits)}`,
  () => `shpat_${chars(32, hexDigits)}`,
  () => `hf_${chars(34)}`,
  () => `sk-proj-${chars(40)}T3BlbkFJ${chars(40)}`,
  () => `sk-ant-api03-${chars(93)}AA`,
  () => `eyJhbGciOiJIUzI1NiJ9.eyJ${chars(40)}.${chars(43)}`,
  () => `${chars(9, Array.from('123456789'))}:AA${chars(33)}`,
  () => `GOCSPX-${chars(28)}`,
  () => `dckr_pat_${chars(27)}`,
  () => `PMAK-${chars(24, hexDigits)}-${chars(34, hexDigits)}`,
  () => `dapi${chars(32, hexDigits)}`,
  () => `ATATT3xFfGF0${chars(60)}`,
  () => `$2y$10$${chars(53)}`,
  () => `$6$${chars(8)}$${chars(86)}`,
  () => `xprv9s21ZrQH143K${chars(95)}`,
  () => `lin_api_${chars(40)}`,
]
const opaque = [
  () => chars(40),
  () => chars(32, hexDigits),
  () => `${chars(20)}/${chars(10)}+${chars(8)}`,
]
const digits = [() => chars(6, Array.from('0123456789'))]

const xml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')

const json = (text: string): string => JSON.stringify(text).slice(1, -1)

const groups: Record<string, Group> = {
  'a labelled line': {
    secrets: [phrase],
    templates: [
      'Password: §',
      'URL: https://portal.acme.example/login\nUsername: joe.doe\nPassword: §\nApplication: Google_[Chrome]_Default',
      'SOFT: Chrome Default (109.0.5414.120)\nURL: https://mail.acme.example/\nUSER: ann@acme.example\nPASS: §\n',
      'Host: ftp.acme.example\r\nLogin: deploy\r\nPassword: §\r\nPort: 21',
      'passwd = §',
      'pwd=§',
      'db.password=§\ndb.host=10.0.0.4',
      'spring.datasource.url=jdbc:mysql://db1:3306/app\nspring.datasource.password=§',
      '[client]\nuser=backup\npassword = §\nhost=db2',
      'password => §',
      'password := §',
      'PASSWORD -> §',
      'Passwort: §',
      'Kennwort = §',
      'Mot de passe : §',
      'mdp: §',
      'Contraseña: §',
      'usuario: jperez\nclave: §',
      'senha: §',
      'Wachtwoord: §',
      'hasło: §',
      'Heslo: §',
      'Lösenord: §',
      'şifre: §',
      'Jelszó: §',
      'логин: ivan\nпароль: §',
      '用户名：zhang\n密码：§',
      '帳號: lin\n密碼: §',
      'ユーザー名：tanaka\nパスワード：§',
      '아이디: kim\n비밀번호: §',
      'mật khẩu: §',
      'كلمة المرور: §',
      'Kata sandi: §',
      'Κωδικός: §',
      'סיסמה: §',
      '- **Password:** §',
      '> Password: §',
      'Password (Пароль): §',
      'wifi password: §',
      'The FTP password: §',
      'Seed phrase: §',
      'DB_PASSWORD=§',
      'export ADMIN_PWD=§',
      'login: root password: §',
      'CLIENT_SECRET=§',
      'Admin panel: https://cms.acme.example/wp-admin\nlogin: editor\npass: §',
      'passphrase: §',
      '2024-03-01 12:00:01 DEBUG auth user=joe password=§',
    ],
  },
  'a quoted value': {
    secrets: [phrase],
    write: json,
    templates: [
      '{"username":"joe","password":"§","active":true}',
      '{\n  "host": "db1.acme.example",\n  "dbPassword": "§",\n  "port": 5432\n}',
      '{"credentials":[{"url":"https://vpn.acme.example","login":"ann","pass":"§"}]}',
      'const config = { user: "joe", password: "§", host: "db1" };',
      '"secretAccessKey": "§",',
      '$db_password = "§";',
      'db_pass: "§"',
      '{"name": "password", "value": "§"}',
      '{"value":"§","field":"passwd","id":4}',
      '{ label: "password", value: "§" }',
      'password: str = "§"',
      'var adminPassword = "§" // TODO move',
      '  "client_secret" : "§",\n  "client_id" : "acme-web"',
      'setPassword = "§"',
    ],
  },
  markup: {
    secrets: [phrase],
    write: xml,
    templates: [
      '<server><username>joe</username><password>§</password></server>',
      '<add key="DbPassword" value="§" />',
      '<string name="password">§</string>',
      '<key>password</key>\n<string>§</string>',
      '<tr><td>Password</td><td>§</td></tr>',
      '<b>Password:</b> §<br>',
      '<Pass encoding="plain">§</Pass>',
    ],
  },
  'a web request': {
    secrets: [compact],
    write: encodeURIComponent,
    templates: [
      'https://acme.example/login?user=joe&password=§&next=%2Fhome',
      'POST /login HTTP/1.1\r\nHost: acme.example\r\nContent-Length: 40\r\n\r\nusername=joe&password=§&submit=Log+in',
      'GET /reset?email=joe%40acme.example&token=§ HTTP/1.1',
      'https://acme.example/?api_key=§#top',
      'user%5Blogin%5D=joe&user[password]=§&commit=1',
    ],
  },
  'an address with a login': {
    secrets: [
      () => chars(8),
      () => `${chars(4)}!${chars(3)}`,
      () => `p@ss${chars(4)}`,
      () => `${chars(3)}/${chars(5)}`,
    ],
    templates: [
      'postgres://app:§@db1.acme.example:5432/app',
      'DATABASE_URL=mysql://root:§@10.0.0.5/shop',
      'ftp://deploy:§@files.acme.example/www',
      'redis://:§@cache.acme.example:6379/0',
      'git clone https://joe:§@git.acme.example/repo.git',
      'mongodb+srv://admin:§@cluster0.mongodb.example/test',
      'amqp://guest:§@mq.acme.example',
      'proxy http://joe:§@10.1.1.1:3128 ok',
    ],
  },
  'a line of a list': {
    secrets: [compact, phrase],
    isDump: true,
    templates: [
      'joe@acme.example:§',
      'ann@acme.example:first1234\njoe@acme.example:§\nbob@acme.example:xyz98765',
      'joe@acme.example;§',
      'joe@acme.example|§',
      'joe@acme.example\t§',
      'https://portal.acme.example/login:joe:§',
      'portal.acme.example:joe:§',
      'https://portal.acme.example/login:joe@acme.example:§',
      'https://portal.acme.example|joe|§',
      'https://portal.acme.example/login;joe;§',
      'android://Abc12==@com.acme.app/:joe:§',
      'joe.doe:§',
      'ACME\\joe:§',
      '10.0.0.7:8080:proxyuser:§',
      'db1.acme.example:5432:shop:joe:§',
    ],
  },
  'a pair outside of lists': {
    secrets: [() => `${chars(5)}!${chars(4)}`, () => chars(10)],
    templates: [
      'joe@acme.example:§',
      'got one: joe@acme.example:§ works',
      'found alice@acme.example:§, please reset',
      'https://portal.acme.example/login:joe:§',
      'joe:first1234\nann:§\nbob:xyz98765',
      'root:§@10.2.3.4',
      'admin:§',
      'user: joe pass: § host: 10.0.0.4',
      'login: x password: § host: w',
      'the password is §',
      'his password was §.',
      'try password § on vpn.acme.example',
      'la contraseña es §',
      'das Passwort ist §',
      '密码是§',
      'machine ftp.acme.example login joe password §',
      'u: joe p: §',
      'Server=db1;User Id=sa;Password=§;Database=shop',
      'AccountName=acme;AccountKey=§;EndpointSuffix=core.windows.net',
      '(user: joe, password: §)',
      '| joe | password | § |',
      'Login / Password: joe / §',
    ],
  },
  'a shell': {
    secrets: [() => `${chars(5)}%${chars(4)}`, () => chars(12)],
    templates: [
      'mysql -u root -p§ -h db1 shop',
      'sshpass -p § ssh root@10.0.0.4',
      "sshpass -p '§' ssh root@10.0.0.4",
      'curl -u joe:§ https://api.acme.example/v1',
      'curl --user "joe:§" https://api.acme.example/v1',
      'PGPASSWORD=§ psql -h db1 -U joe shop',
      'docker login -u joe -p § registry.acme.example',
      'redis-cli -h cache -a § ping',
      'smbclient //fs1/share -U joe%§',
      'net use Z: \\\\fs1\\share /user:ACME\\joe §',
      'mysqldump --user=root --password=§ shop > shop.sql',
      'vault login --token § ',
      'ldapsearch -x -D cn=admin -w § -b dc=acme',
      'xfreerdp /u:joe /p:§ /v:10.0.0.9',
      'requirepass §',
      "ALTER USER joe WITH PASSWORD '§';",
      "CREATE USER joe IDENTIFIED BY '§';",
      "GRANT ALL ON shop.* TO 'joe'@'%' IDENTIFIED BY '§';",
      "UPDATE users SET password='§' WHERE login='joe';",
    ],
  },
  'a token anywhere': {
    secrets: machineMade,
    templates: [
      '§',
      'token in commit 3f2a: §',
      'see https://paste.example/x §',
      'https://api.acme.example/v1/§/send',
      '// §',
      'found "§" in repo acme/shop',
      'export X=§',
      '<code>§</code>',
      'curl -H "PRIVATE-TOKEN: §" https://git.acme.example/api/v4/projects',
    ],
  },
  'a header': {
    secrets: opaque,
    templates: [
      'Authorization: Bearer §',
      'Authorization: Basic §',
      'authorization: §',
      'X-Api-Key: §',
      "curl -H 'X-Auth-Token: §' https://api.acme.example",
      'curl -H "Authorization: Bearer §" https://api.acme.example/me',
      'Cookie: theme=dark; sessionid=§',
      'Set-Cookie: sid=§; Path=/; HttpOnly',
      'PHPSESSID=§',
      '.acme.example\tTRUE\t/\tTRUE\t1767225600\tsession\t§',
      'AWS_SECRET_ACCESS_KEY=§',
      'aws_secret_access_key = §',
      'STRIPE_KEY="§"',
      "'SECRET_KEY' => '§',",
      "define('AUTH_KEY', '§');",
      "define( 'DB_PASSWORD', '§' );",
      'api key: §',
      'apiKey: "§"',
      'JWT_SECRET=§',
      '_authToken=§',
      '//registry.npmjs.example/:_authToken=§',
      'encryption_key: §',
      '"refresh_token":"§","expires_in":3600',
      'access_token=§&token_type=bearer',
      'private key: 0x§',
      'https://hooks.slack.com/services/T00000000/B00000000/§',
      '{"Auths":{"registry.acme.example":{"auth_token":"§"}}}',
    ],
  },
  'a table': {
    secrets: [() => `${chars(4)}#${chars(5)}`, () => `${chars(3)} ${chars(6)}`],
    templates: [
      'name,url,username,password,note\nacme,https://acme.example,joe,§,work',
      'url;login;password\nhttps://acme.example;joe;§',
      'email\tpassword\nann@acme.example\t§',
      '| user | password |\n|---|---|\n| joe | § |',
      "INSERT INTO `users` (`id`,`login`,`password`) VALUES (1,'joe','§'),(2,'ann','x');",
      "INSERT INTO users (email, passwd, created) VALUES ('joe@acme.example', '§', '2020-01-01');",
      '[password] => §',
      "array('login' => 'joe', 'password' => '§')",
      'Array\n(\n    [user] => joe\n    [pass] => §\n)',
    ],
  },
  digits: {
    secrets: digits,
    templates: [
      'PIN: §',
      'your verification code: §',
      '{sid: §}',
      '{"otp": §}',
      'cookie: sid=§',
      '{"session_id": §, "user": "joe"}',
    ],
  },
  'a key of several lines': {
    secrets: [() => `${chars(64)}\n${chars(64)}\n${chars(30)}==`],
    templates: [
      '-----BEGIN RSA PRIVATE KEY-----\n§\n-----END RSA PRIVATE KEY-----',
      'deploy key:\n-----BEGIN OPENSSH PRIVATE KEY-----\n§\n-----END OPENSSH PRIVATE KEY-----\nfor git.acme.example',
      '-----BEGIN PRIVATE KEY-----\n§',
      '§\n-----END EC PRIVATE KEY-----',
      '-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n§\n-----END PGP PRIVATE KEY BLOCK-----',
    ],
  },
  'mark tags within': {
    secrets: [() => `${chars(3)}<mark>${chars(4)}</mark>${chars(3)}`],
    isDump: true,
    templates: [
      '<mark>joe@acme.example</mark>:§',
      'pass<mark>word</mark>: §',
      'Login: <mark>joe</mark>\nPassword: §',
      'https://<mark>acme</mark>.example/login:joe:§',
    ],
  },
}

export const templateCount = Object.values(groups).reduce(
  (sum, { templates }) => sum + templates.length,
  0,
)

/** So many secrets, every template about as often. */
export function plantSecrets(count: number, from: Record<string, Group> = groups): Planted[] {
  const places = Object.values(from).flatMap((group) =>
    group.templates.map((template) => ({ group, template })),
  )
  return Array.from({ length: count }, (_, at) => {
    const { group, template } = places[at % places.length]!
    const round = Math.floor(at / places.length)
    const secret = (group.write ?? ((text: string) => text))(
      group.secrets[(at + round) % group.secrets.length]!(),
    )
    return {
      text: template.replaceAll('§', () => secret),
      secret,
      isDump: group.isDump === true,
      template,
    }
  })
}

const harmless: readonly string[] = [
  'seen at 12:30 and {date}T12:30:45Z',
  'open ports\n{ip}:8080\n{host}:443',
  'see https://{host}/a?b=c, or write to {mail}, please',
  'https://{host}\nhttps://www.{host}/about',
  'the token economy; a secret garden',
  'New ransomware victim: {name} GmbH, {n} employees, revenue ${n}M',
  'Selling access to {host}, VPN + RDP, price {n}$, contact @{name} on telegram',
  'Subject: invoice {n}\nFrom: {mail}\nTo: office@{host}\nDate: {date}',
  'The password policy requires at least {n} characters.',
  'Passwords: {n}, Cookies: {n}, Credit cards: {n}',
  'the password is required',
  'The password is stored in plain text.',
  'Password must be at least {n} characters long',
  'password reset link was sent to {mail}',
  'Forgot password? Click here',
  'leaked database of {host}: {n} rows, fields: id, email, password, phone',
  'Format: email:password',
  'login:password combos from {host}, {n} lines',
  'Compilation of {n}k mail:pass, no mirror',
  '{"id": {n}, "type": "bucket", "url": "https://{host}/x", "severity": "low"}',
  '{"password": null, "has_password": true, "password_count": {n}}',
  'primary_key: {n}',
  'foreign_key: user_id',
  'sort_key={n}',
  'SHA256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a{n}',
  'md5 d41d8cd98f00b204e9800998ecf8427e of {host}.exe',
  'commit 3f786850e387550fdab836ed7e6dc881de23001b by {name}',
  'CVE-2024-{n}: remote code execution in {host}',
  'Operating system: Windows 10 Pro x64\nCPU: Intel(R) Core(TM) i7-{n}\nRAM: {n} MB',
  'IP: {ip}\nCountry: DE\nZip code: {n}\nTimezone: UTC+1',
  'HWID: 0F3B{n}A1-77C2-4E1B\nScreen size: 1920x1080',
  'Build ID: redline_{n}\nFile location: C:\\Users\\{name}\\AppData\\Local\\Temp\\a.exe',
  'User name: {name}\nMachine: DESKTOP-{n}',
  'URL: https://{host}/login\nUsername: {name}\nApplication: Chrome',
  'function login(user, password) { return check(user, password) }',
  'const password = req.body.password;',
  'password: string;',
  'password = models.CharField(max_length={n})',
  'String password = null;',
  'password: ${DB_PASSWORD}',
  'password={{ vault_password }}',
  'secret: process.env.SECRET,',
  'api_key = os.environ["API_KEY"]',
  'if (token === null) throw new Error("no token")',
  'import { Token } from "./token"',
  'token_type: bearer, expires_in: {n}',
  'max_tokens: {n}',
  'Password: ********',
  'Password: <redacted>',
  'Password: N/A',
  'password: required',
  'Meeting at {n}:30, room {n}; bring slides',
  'ratio 3:1, score 2:2, time 10:45',
  'ssh-rsa key fingerprint SHA256 changed on {host}',
  'git commit -m "rotate secrets"',
  '{name}: hello everyone\n{name}: anyone has logs of {host}?',
  '[{date} 10:00] {name}: price is {n} USD for full access',
  'Join our channel: https://t.me/{name}{n}',
  'contact: {mail}, tel. +49 30 {n}',
  '{mail}, office@{host}, info@{host}',
  '{mail} wrote on {date}: thanks for the report',
  'Emails: {mail} | {name} | Berlin',
  '{mail}: please call me back tomorrow',
  'Author: {name}\nTitle: Annual report\nPages: {n}',
  'host: {host}\nport: {n}\nprotocol: https',
  'user={name} action=login status=failed ip={ip}',
  'GET /index.html?page={n}&sort=asc HTTP/1.1\r\nHost: {host}\r\nAccept: */*',
  'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {n}',
  'Server: nginx/1.18.0\nX-Powered-By: PHP/7.{n}',
  'docker pull registry.{host}/app:1.{n}.0',
  'image: nginx:1.25\nports:\n  - "8080:80"',
  'version: 3.{n}.1\nname: shop\nlicense: MIT',
  'npm install left-pad@1.{n}.0',
  'arn:aws:s3:::acme-{n}-backups',
  's3://acme-backups/{date}/dump.sql.gz',
  'Your bank card ending in {n} expires in 12/27',
  'Bank: {name}, BIN: 4{n}11, Country: US, has CVV: yes',
  'Lookalike domain {host} registered on {date} at Namecheap',
  "Certificate CN={host}, issuer Let's Encrypt R3, valid to {date}",
  'Vulnerability scan: {ip} runs OpenSSH 8.{n}, port 22',
  'The secret service arrested {name} in {date}',
  'the secret to good coffee is fresh beans',
  'Token price: ${n}, market cap {n}M',
  'Token: ETH, network: Polygon',
  'Key: C major, tempo: {n} bpm',
  'Key findings: {n} hosts are exposed',
  'Pass rate: {n}%',
  'session: morning, speaker: {name}',
  'author_id: {n}, session_count: {n}',
  'Cookie policy: we use cookies to improve {host}',
  'Cookies: {n}',
  'Table users: id int, login varchar(50), password varchar(255)',
  'SELECT login, password FROM users WHERE id = {n}',
  'CREATE TABLE users (id INT PRIMARY KEY, password VARCHAR({n}))',
  'palabra clave: marketing',
  'la contraseña es obligatoria',
  'Das Passwort ist falsch',
  'Пароль должен содержать не менее {n} символов',
  '密码不能为空',
  'パスワードを忘れた方はこちら',
  'mot de passe oublié ? cliquez ici',
  'Monitoring group {n}: keyword acme, domain {host}',
  'threat actor {name} claims {n} GB of {host}',
  'ISP: Deutsche Telekom\nAS{n}\nLocation: Berlin',
  'note: server moved to {ip}\ntodo: update dns of {host}',
  'Windows license status: activated',
  'browser: Firefox {n}\nprofile: default-release',
  'Tokens used: {n}',
  'two-factor authentication is enabled for {mail}',
  'uid: stealer_log/live/{n}',
  'https://{host}/u/{name}/posts/{n}?ref=home#c{n}',
  'ftp://files.{host}/pub/{n}.iso',
  'mailto:{mail}',
  'Email: {mail}\nPhone: +1 555 {n}\nAddress: Main St. {n}',
  'secretary@{host} is out of office until {date}',
  'The company lost {n} passwords in the breach of {date}',
  'passwords were hashed with bcrypt, cost {n}',
]

/** So many texts that hold no secret. */
export function harmlessTexts(count: number, from: readonly string[] = harmless): string[] {
  const fill: Record<string, () => string> = {
    n: () => String(pick([3, 7, 12, 48, 120, 443, 1042, 2026, 8192, 15_000])),
    host: () =>
      pick(['acme.example', 'shop.globex.example', 'initech-bank.example', 'mail.hooli.example']),
    mail: () => pick(['joe@acme.example', 'ann.lee@globex.example', 'b.smith77@initech.example']),
    name: () => pick(['joe', 'darkcat', 'Ann', 'svc_backup', 'Müller', 'ivan77']),
    ip: () => pick(['10.0.0.4', '192.0.2.17', '203.0.113.99']),
    date: () => pick(['2024-03-01', '2026-11-22', '2025-12-31']),
  }
  return Array.from({ length: count }, (_, at) =>
    from[at % from.length]!.replaceAll(/\{(n|host|mail|name|ip|date)\}/g, (_match, key: string) =>
      fill[key]!(),
    ),
  )
}

/** Written after the masks were done, to see what they do with surroundings that nobody tuned them to. */
export const heldOutSecrets: Record<string, Group> = {
  lines: {
    secrets: [phrase],
    templates: [
      'Site: portal.acme.example\nE-mail: joe@acme.example\nPassword : §\n===============',
      '[+] Password found -> §',
      'root password = §',
      'smtp_pass: §',
      'MYSQL_ROOT_PASSWORD: §',
      'MAIL_PASSWORD=§\nMAIL_ENCRYPTION=tls',
      'ANSIBLE_BECOME_PASS=§',
      'Пароль от почты: §',
      'Ваш пароль: §',
      'Zugangsdaten:\nBenutzer: mmueller\nPasswort: §',
      "Nom d'utilisateur : mdupont\nMot de passe : §",
      'Nombre de usuario: pgarcia\nContraseña : §',
      'Usuário: csilva\nSenha: §',
      'Gebruikersnaam: jansen\nWachtwoord: §',
      '账号: wang88 \n密码: §',
      'Your new password is: §',
      'Password [Chrome]: §',
      'userPassword: §',
      'ldap.bind.password=§',
      'Kullanıcı adı: ali\nŞifre: §',
      'sa pwd: §',
      'PASSWORD\t§',
      'http.proxyPassword=§',
      'root_password: §\nhostname: web1',
    ],
  },
  code: {
    secrets: [phrase],
    write: json,
    templates: [
      'jdbcTemplate.setPassword("§");',
      '{"type":"login","data":{"user":"joe","pwd":"§"},"ts":1700000000}',
      "  password: '§'".replaceAll("'", '"'),
      'String PASS = "§";',
      'auth=("joe", "§")',
      'self.password = "§"',
      '"accounts":[{"email":"ann@acme.example","plain_password":"§"}]',
      'conn = pymysql.connect(host="db1", user="root", passwd="§", db="shop")',
      'password: "§" # do not commit',
      '{"key":"db_password","value":"§"}',
      '{\\"user\\":\\"joe\\",\\"password\\":\\"§\\"}',
    ],
  },
  words: {
    secrets: [() => chars(11), () => `${chars(5)}@${chars(4)}`, () => `${chars(4)}#${chars(3)}!`],
    templates: [
      'bro the pass is §',
      'creds admin:§ on vpn.acme.example',
      'login joe / pass §',
      'user joe pwd §',
      'username=joe;password=§;',
      'wget --user=joe --password=§ https://files.acme.example/x',
      'wget --http-password=§ https://files.acme.example/x',
      'psql "host=db1 user=joe password=§ dbname=shop"',
      'mongo --username joe --password § --host db1',
      'ssh joe@10.0.0.4 # password: §',
      'Data Source=db1;Initial Catalog=shop;User ID=sa;Password=§',
      'rsync://joe:§@backup.acme.example/data',
      'smb://ACME;joe:§@fs1/share',
      'sftp://joe:§@10.0.0.4:22/home',
      'default login is admin with password §',
      'svn checkout --username joe --password § https://svn.acme.example',
      'htpasswd -b .htpasswd joe §',
      'echo § | sudo -S reboot',
      'joe@acme.example -> §',
      '1) joe@acme.example:§',
      'ann@acme.example:§ | Plan: Premium | Country: DE',
    ],
  },
  dumps: {
    secrets: [compact],
    isDump: true,
    templates: [
      'portal.acme.example/login joe@acme.example:§',
      'https://acme.example:8443/owa/auth joe@acme.example:§',
      'jdoe@acme.example : §',
      '+4915112345678:§',
      '12345678:§',
      'https://vpn.acme.example/+CSCOE+/logon.html:jdoe:§',
      'vpn.acme.example;jdoe;§',
      'jdoe\t§',
      'jdoe;§',
    ],
  },
  machines: {
    secrets: [...machineMade, ...opaque],
    templates: [
      'GITHUB_TOKEN=§',
      'NPM_TOKEN: §',
      'slack_token = "§"',
      '"apikey": "§"',
      'headers = {"Authorization": "Bearer §"}',
      'Authorization: token §',
      "fetch(url, { headers: { 'x-api-key': '§' } })",
      'secret_key_base: §',
      'GOOGLE_API_KEY=§ # maps',
      'client-secret: §',
      'twilio_auth_token: "§"',
      'sessionToken=§',
      'docker run -e API_TOKEN=§ acme/app',
      'kubectl create secret generic db --from-literal=password=§',
      'aws configure set aws_secret_access_key §',
      'https://api.acme.example/v2/items?access_token=§&limit=10',
      '<apiKey>§</apiKey>',
      'apikey=§;region=eu',
      'PRIVATE-TOKEN: §',
    ],
  },
}

export const heldOutHarmless: readonly string[] = [
  'Access broker {name} offers domain admin at a {n}M company, {host}',
  'Domain: {host}\nRegistrar: GoDaddy\nName servers: ns1.{host}, ns2.{host}',
  'The admin changed the password on {date}.',
  'we never ask for your password by e-mail',
  'Users should rotate tokens and passwords after the incident at {host}',
  'password spraying against {host} from {ip}',
  'Pass-the-hash attack seen on {ip}',
  'credential stuffing: {n} attempts, {n} accounts locked',
  'Telegram channel {name}, {n} subscribers, posts: {n}',
  '{"severity":"high","score":{n},"host":"{host}","ports":[22,443,{n}]}',
  'Title: How to choose a password manager',
  'Show HN: a password manager in {n} lines of Go',
  'error: invalid token at line {n}, column 3',
  'SyntaxError: unexpected token < in JSON at position {n}',
  'csrf token missing or incorrect',
  'Session expired, please log in again at https://{host}/login',
  'def set_password(self, password):\n    self.hash = bcrypt(password)',
  'if password != confirm_password: raise ValueError("mismatch")',
  'export PATH=$PATH:/usr/local/bin',
  'alias ll="ls -la"',
  'SELECT COUNT(*) FROM sessions WHERE user_id = {n};',
  'ALTER TABLE users DROP COLUMN password;',
  'TLS certificate for {host}: serial 04:A3:{n}:9F',
  'mac address 00:1A:2B:3C:4D:5E on {ip}',
  'From: {name} <{mail}>\nReply-To: {mail}\nMessage-ID: <{n}@{host}>',
  'Received: from {host} ({ip}) by mx1.{host}; {date}',
  'Listing: {n}x bank logs {name}, min balance {n}$, escrow accepted',
  'Bitcoin address: 1BoatSLRHtKNngkdXEeobR76b53LETtpyT, balance {n}',
  'Onion: http://exampleonionaddress{n}.onion/blog',
  '{name}@{host} ~ $ ls -la /var/log',
  'Kernel: Linux 5.15.0-{n}-generic #1 SMP x86_64',
  'GPU: NVIDIA GeForce RTX {n}\nAntivirus: Windows Defender',
  'Installed apps:\n1) 1Password {n}.0\n2) KeePass 2.{n}\n3) Token2 Shell',
  'Keyboard layouts: de, en\nUAC: enabled\nElevation: false',
  'Der Schlüssel zum Erfolg: Geduld',
  'Ключевые слова: банк, утечка, {host}',
  'Контакты: @{name}, цена {n}$',
  '公司: 某某有限公司，员工 {n} 人',
  'お知らせ：サーバーメンテナンス {date}',
  'Salut, le mot de passe est obligatoire pour continuer',
  'O usuário deve alterar a senha a cada {n} dias',
  'Price list: US fullz {n}$, EU fullz {n}$, dumps with PIN available',
  'Card brand: VISA, type: CREDIT, level: GOLD, bank: {name}',
  'PIN code area {n}, Mumbai',
  'Secret Santa list: Ann, {name}, Bob',
  'hash rate: {n} TH/s',
  'Git remote: git@{host}:team/repo.git',
  'https://{host}/oauth/authorize?response_type=code&client_id=web&scope=email',
  'kubectl get secrets -n prod',
  'chmod 600 ~/.ssh/id_rsa; ssh {name}@{ip} -p {n}',
  'Contact: {name} ({mail}), Position: CISO, LinkedIn: /in/{name}',
  'ID;Name;City\n1;{name};Berlin\n2;Ann;Paris',
  'name,email,phone\n{name},{mail},+4930{n}',
  'rule: alert tcp any any -> {ip} {n} (msg:"scan"; sid:{n};)',
  'User SID: S-1-5-21-3623811015-3361044348-30300820-{n}',
  'ETA: {n} minutes; status: in progress; owner: {name}',
  'log4j.rootLogger=INFO, stdout',
  'Key Vault access by {name} from {ip} at {date}',
  'Passport No. field is mandatory for booking {n}',
  'tokenizer.model_max_length = {n}',
]

/**
 * Whether four characters in a row of the secret are readable where the text has none of its own: the
 * first and the last character belong to the mask.
 */
export function leaks({ text, secret, template }: Planted, masked: string): boolean {
  const bare = secret.replaceAll(/<\/?mark>/g, '')
  const around = template.replaceAll('§', '').replaceAll(/<\/?mark>/g, '')
  for (let at = 0; at + 4 <= bare.length; at += 1) {
    const run = bare.slice(at, at + 4)
    if (run.trim().length === 4 && masked.includes(run) && !around.includes(run)) return true
  }
  return text === '' // never planted
}

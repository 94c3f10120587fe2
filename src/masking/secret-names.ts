/**
 * Names of secrets: keys of structured values, columns, and labels in text, in the languages of the
 * API's sources. A name counts in any case and spelling (`api_key`, `apiKey`, `API-KEY`), with or
 * without accents, and as a dotted path, the way highlights name fields.
 */

/**
 * What the value is: a phrase may contain anything, also spaces; a token contains no white space.
 */
export type SecretKind = 'phrase' | 'token' | 'cookie'

/** How the value of a field is shown. */
export type Treatment =
  | 'shown'
  /** A secret, with all below it: first and last character remain. */
  | 'masked'
  /** A secret, with all below it: nothing remains. */
  | 'hidden'
  /**
   * A cookie or a list of them: a text or number is the cookie itself, members go by their name.
   */
  | 'cookie'
  /** A member of a cookie that is not secret, such as its domain. */
  | 'of cookie'

/**
 * How the value of a member called `key` is shown, if `outer` applies to the value that contains
 * it.
 */
export function findTreatment(key: string, outer: Treatment = 'shown'): Treatment {
  return key.split('.').reduce(segmentTreatment, outer)
}

function segmentTreatment(outer: Treatment, segment: string): Treatment {
  if (outer === 'masked' || outer === 'hidden' || /^\[?\d*\]?$/u.test(segment)) return outer
  if (outer === 'cookie' || outer === 'of cookie') {
    return nonSecretInCookie.has(splitWords(segment).join('')) ? 'of cookie' : 'hidden'
  }
  const kind = secretKind(segment)
  if (kind === 'cookie') return 'cookie'
  return kind === null ? 'shown' : 'masked'
}

/** The kind of secret that a field, column or variable of this name holds; null if none. */
export function secretKind(name: string): SecretKind | null {
  const known = knownKinds.get(name)
  if (known !== undefined) return known
  const kind = name.length > maxNameLength ? null : classifyWords(splitWords(name))
  if (knownKinds.size >= 5_000) knownKinds.clear()
  knownKinds.set(name, kind)
  return kind
}

const knownKinds = new Map<string, SecretKind | null>()
const maxNameLength = 200

function classifyWords(words: readonly string[]): SecretKind | null {
  const whole = words.join('')
  const [first = '', last = ''] = [words[0], words.at(-1)]
  if (tokenWords.has(whole)) return 'token'
  if (secretDescriptions.has(last) || descriptionPrefixes.has(first)) return null
  if (words.some((word) => cookieWords.has(word)) || cookieWords.has(whole)) return 'cookie'
  if (keywords.has(whole)) return null
  if (phraseWords.has(whole) || words.some((word) => phraseWords.has(word))) return 'phrase'
  if (phraseStems.test(whole) || unspacedPhrase.test(whole)) return 'phrase'
  if (words.some((word) => tokenWords.has(word)) || tokenStems.test(whole)) return 'token'
  const isKey = words.length > 1 && /^(?:keys?|pat)$/u.test(last)
  return isKey && !nonSecretKeys.has(words.at(-2) ?? '') ? 'token' : null
}

/**
 * What a label in running text announces. `weak`: the label is an everyday word, so the value must
 * look like a secret. `context`: it names who or where, not a secret.
 */
export interface Label {
  kind: SecretKind | 'context'
  weak: boolean
}

/**
 * The label that ends in these words, of which the last may be an identifier such as `DB_PASSWORD`.
 */
export function labelAt(words: readonly string[]): Label | null {
  const last = words.at(-1) ?? ''
  if (!/\p{L}/u.test(last)) return null
  const near = words.slice(-3)
  const key = near.join(' ')
  const known = knownLabels.get(key)
  if (known !== undefined) return known
  const label = classifyLabel(near.map(fold), last)
  if (knownLabels.size >= 5_000) knownLabels.clear()
  knownLabels.set(key, label)
  return label
}

const knownLabels = new Map<string, Label | null>()

function classifyLabel(folded: readonly string[], last: string): Label | null {
  const whole = folded.at(-1) ?? ''
  const pair = folded.slice(-2).join('')
  if (keywords.has(pair)) return null
  const spaced = [folded.join(''), pair].find((joined) => spacedLabels.has(joined))
  if (folded.length > 1 && spaced !== undefined) {
    const isToken = spaced.endsWith('key') || digitsOnly.has(spaced)
    return { kind: isToken ? 'token' : 'phrase', weak: false }
  }
  const parts = splitWords(last)
  const kind = fieldOnlyWords.has(parts.at(-1) ?? '') ? null : secretKind(last)
  if (kind !== null) return { kind, weak: parts.length === 1 && weakLabels.has(parts.join('')) }
  const isContext = contextLabels.has(parts.join('')) || contextLabels.has(parts.at(-1) ?? '')
  return isContext || contextUnspaced.test(whole) ? { kind: 'context', weak: false } : null
}

/** Whether a label of this name announces a secret of digits only. */
export function holdsDigits(name: string): boolean {
  const parts = splitWords(name)
  return digitsOnly.has(parts.at(-1) ?? '') || digitsOnly.has(parts.join(''))
}

/** Whether the name is a plural: `Passwords: 120` states a number. */
export function isPlural(name: string): boolean {
  return /(?:s|wörter|woerter|и|ов)$/iu.test(name) && !/(?:pass|credentials)$/iu.test(name)
}

/** The words of a name, in lower case, without accents and other marks. */
function splitWords(name: string): string[] {
  return fold(
    name
      .replaceAll(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, ' ')
      .replaceAll(/(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu, ' '),
  )
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
}

/** Makes `Contraseña` and `CONTRASENA` equal; ł and ı do not decompose, so they are replaced. */
function fold(text: string): string {
  if (/^[!-~]*$/u.test(text)) return text.toLowerCase()
  return text
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll('ł', 'l')
    .replaceAll('ı', 'i')
}

function wordSet(...lists: string[]): Set<string> {
  return new Set(lists.flatMap((list) => list.split(/\s+/u)).map(fold))
}

/** Secrets that people choose. */
const phraseWords = wordSet(
  'pass passes pwd pwds psw pswd pw passw passphrase passcode secret secrets plaintext cleartext mnemonic seedphrase',
  'contraseña contrasenia clave senha palavrapasse motdepasse mdp kennwort wachtwoord hasło heslo lösenord',
  'adgangskode kodeord passord salasana şifre parola jelszó lozinka zaporka geslo katasandi sandi matkhau',
  'пароль пароля паролем паролю пароли паролей пасс парола лозинка κωδικος κωδικός συνθηματικό',
  'keymaterial schlüsselinhalt wlanschlüssel netzwerkschlüssel zugangscode zugangsschlüssel',
  'باسورد پسورد گذرواژه סיסמה סיסמא पासवर्ड পাসওয়ার্ড',
)
const phraseStems =
  /passwo?r[dt]|passw(?:or|oe|o)rter|passwd|pasword|passphras|passcode|kennwort|wachtwoord|contrasen|secret(?!ar|ion|ely|ly|iv)|(?:user|db|ftp|mail|smtp|imap|root|admin|wp|wifi|vpn|ssh|sql|login|bind|ldap|redis|mongo|proxy|rpc|key|store)(?:pass|pwd|pw)$/u
/** In scripts without spaces between words the name ends in one of these. */
const unspacedPhrase = new RegExp(
  `(?:${['密码', '密碼', '口令', '密钥', '密鑰', 'パスワード', 'パス', '暗証番号', '비밀번호', '비번', '암호', '패스워드', 'รหัสผ่าน'].map(fold).join('|')})$`,
  'u',
)

/** Secrets that machines make, or digits. */
const tokenWords = wordSet(
  'token tokens jwt bearer authorization apikey apikeys accesskey privatekey authkey psk sid sess sessid sessionid phpsessid jsessionid',
  'hash hashes ntlm nthash lmhash pin otp totp cvv cvv2 cvc cvn ssn pan cardnumber seed токен токена ключ 令牌',
)
const tokenStems =
  /token(?!i[sz]|om)s?$|^token(?!i[sz]|om)|api_?key|secretkey|accesskey|privatekey|masterkey|signingkey|encryptionkey|licensekey|sessionid|clientkeydata|authorization|cvv/u

const cookieWords = wordSet('cookie cookies setcookie куки')
const nonSecretInCookie = wordSet(
  'host hostkey domain path name browser url site expires expiresutc expirationdate expiry httponly issecure secure samesite ishttponly creationutc lastaccessutc',
)

/** `known_password_id`, `hash_type` and names that begin with `has_` describe a secret. */
const secretDescriptions = wordSet(
  'id ids type types count counts at name names length policy policies url uri endpoint expires expiry expiration ttl age size limit max min version format algorithm alg hint required enabled disabled changed updated strength score date time issuer audience scope server provider manager file path reset field fields used prefix status title rotation page link',
)
const descriptionPrefixes = wordSet(
  'has is requires require needs num number total max min forgot reset change confirm show hide no',
)
/** Words that contain the name of a secret and are none, such as `palabra clave` (keyword). */
const keywords = wordSet(
  'palabraclave palabrasclave parolachiave secretservice passwordless bypass',
)
/** With `key`, such as `primary_key`, these name no secret. */
const nonSecretKeys = wordSet(
  'primary foreign public partition sort unique index host row object cache registry group map translation issue project routing dedup event idempotency message hash range column lookup natural surrogate candidate composite join parent child hot low turn off arrow function home shift enter delete locale i18n item list data file lang language sub short react config settings storage query search sorting order metric answer host major minor',
)

/** Names of secrets only as fields: in running text they are ordinary words, or hashes of files. */
const fieldOnlyWords = wordSet('hash hashes plaintext cleartext pan seed ключ passes')
const weakLabels = wordSet(
  'secret secrets token tokens pin otp totp cvv cvv2 cvc cvn ssn jwt bearer sid sess psk pw clave parola sandi токен 令牌 authorization ntlm passes',
)
const digitsOnly = wordSet(
  'pin otp totp cvv cvv2 cvc cvn ssn securitycode verificationcode backupcode backupcodes recoverycode recoverycodes smscode',
)
/** Labels of several words, joined. */
const spacedLabels = wordSet(
  'clavedeacceso clavesecreta codigodeacceso paroladordine codicediaccesso codedacces keycontent',
  'apikey accesskey secretkey privatekey encryptionkey licensekey authkey sshkey masterkey signingkey sessionkey',
  'seedphrase recoveryphrase secretphrase recoverykey passphrase password codesecret motdepasse palavrapasse palavra-passe katasandi katalaluan mậtkhẩu',
  'كلمةالمرور كلمةالسر الرقمالسري رمزعبور κωδικόςπρόσβασης',
  'securitycode verificationcode backupcode backupcodes recoverycode recoverycodes smscode',
)

/** Labels of who and where: they end a secret before them, and their values stay readable. */
const contextLabels = wordSet(
  'login logins user username usr userid uid email mail account acct acc host hostname server url uri site website domain ip ipaddress port app application software soft browser profile storage date time name phone country city os hwid system machine computer pc id type role note notes comment status path database db dbname schema source group tenant link target service protocol',
  'usuario usuaria correo cuenta utilisateur identifiant courriel benutzer benutzername nutzer anwender konto utente usuário conta użytkownik gebruiker gebruikersnaam kullanıcı kullanici логин пользователь почта сайт хост сервер имя',
  'servidor serveur dominio domaine domäne sitio hôte rechner puerto fournisseur',
  'encrypt timeout driver pooling charset catalog datasource sslmode submit remember redirect csrf action lang region endpointsuffix entitypath granttype clientid username keyid',
)
const contextUnspaced = new RegExp(
  `(?:${['用户名', '用戶名', '账号', '帳號', '帐号', '邮箱', '郵箱', '网址', '主机', '登录名', 'ユーザー名', 'ユーザー', 'ログイン', 'アカウント', 'メール', '아이디', '사용자', '계정', '이메일'].map(fold).join('|')})$`,
  'u',
)

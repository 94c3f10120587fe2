/**
 * Names of secrets, as keys of structured values and variables have them, in the languages of the
 * API's sources. A name counts in any case and spelling (`api_key`, `apiKey`, `API-KEY`), with or
 * without accents, and as a dotted path, the way highlights name fields.
 */

export type SecretKind = 'secret' | 'cookie'

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
  /** A login, an id or a digest: odd by its nature, and no secret. */
  | 'id'

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
  if (kind !== null) return 'masked'
  const words = splitWords(segment)
  return idWords.has(words.at(-1) ?? '') || idWords.has(words.join('')) ? 'id' : 'shown'
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
  if (secretWords.has(whole)) return 'secret'
  if (secretDescriptions.has(last) || descriptionPrefixes.has(first)) return null
  if (words.some((word) => cookieWords.has(word)) || cookieWords.has(whole)) return 'cookie'
  if (keywords.has(whole)) return null
  const isSecret = secretStems.test(whole) || unspacedSecret.test(whole)
  if (isSecret || words.some((word) => secretWords.has(word))) return 'secret'
  const isKey = words.length > 1 && /^(?:keys?|pat)$/u.test(last)
  return isKey && !nonSecretKeys.has(words.at(-2) ?? '') ? 'secret' : null
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

const secretWords = wordSet(
  'pass passes pwd pwds psw pswd pw passw passphrase passcode secret secrets plaintext cleartext mnemonic seedphrase',
  'contraseña contrasenia clave senha palavrapasse motdepasse mdp kennwort wachtwoord hasło heslo lösenord',
  'adgangskode kodeord passord salasana şifre parola jelszó lozinka zaporka geslo katasandi sandi matkhau',
  'пароль пароля паролем паролю пароли паролей пасс парола лозинка κωδικος κωδικός συνθηματικό',
  'keymaterial schlüsselinhalt wlanschlüssel netzwerkschlüssel zugangscode zugangsschlüssel',
  'باسورد پسورد گذرواژه סיסמה סיסמא पासवर्ड পাসওয়ার্ড',
  'token tokens jwt bearer authorization apikey apikeys accesskey privatekey authkey psk sid sess sessid sessionid phpsessid jsessionid',
  'hash hashes ntlm nthash lmhash pin otp totp cvv cvv2 cvc cvn ssn pan cardnumber seed токен токена ключ 令牌',
)
const secretStems =
  /passwo?r[dt]|passw(?:or|oe|o)rter|passwd|pasword|passphras|passcode|kennwort|wachtwoord|contrasen|secret(?!ar|ion|ely|ly|iv)|(?:user|db|ftp|mail|smtp|imap|root|admin|wp|wifi|vpn|ssh|sql|login|bind|ldap|redis|mongo|proxy|rpc|key|store)(?:pass|pwd|pw)$|token(?!i[sz]|om)s?$|^token(?!i[sz]|om)|api_?key|accesskey|privatekey|masterkey|signingkey|encryptionkey|licensekey|sessionid|clientkeydata|cvv/u
/** In scripts without spaces between words the name ends in one of these. */
const unspacedSecret = new RegExp(
  `(?:${['密码', '密碼', '口令', '密钥', '密鑰', 'パスワード', 'パス', '暗証番号', '비밀번호', '비번', '암호', '패스워드', 'รหัสผ่าน'].map(fold).join('|')})$`,
  'u',
)

const cookieWords = wordSet('cookie cookies setcookie куки')
const nonSecretInCookie = wordSet(
  'host hostkey domain path name browser url site expires expiresutc expirationdate expiry httponly issecure secure samesite ishttponly creationutc lastaccessutc',
)

/** `known_password_id`, `hash_type` and names that begin with `has_` describe a secret. */
const secretDescriptions = wordSet(
  'id ids type types count counts at name names length policy policies rules lifetime url uri endpoint expires expiry expiration ttl age size limit max min version format algorithm alg hint required enabled disabled changed updated strength score date time issuer audience scope server provider manager file path reset field fields used prefix status title rotation page link',
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

/** A field whose name ends in one of these, or is one, holds a login, an id or a digest. */
const idWords = wordSet(
  'id ids uid uids uuid guid hwid digest checksum sha1 sha256 sha512 md5 commit fingerprint serial revision etag ja3 mmh3',
  'username user login email emails account identityname actor nickname',
)

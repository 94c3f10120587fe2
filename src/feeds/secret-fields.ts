/**
 * What of a field may be shown, told by its name alone: of a password its first and last character,
 * of a cookie everything but its value. Names count in any case and spelling (`api_key`, `apiKey`),
 * and as dotted paths, the way highlights name them (`credentials.password`).
 */
export type Treatment =
  | 'shown'
  /** A secret: first and last character remain; so for everything below it. */
  | 'masked'
  /** Nothing remains; so for everything below it. */
  | 'hidden'
  /** A cookie or a list of them: a text here is the cookie itself, the members are told apart. */
  | 'cookie'
  /** A member of a cookie that says whose it is. */
  | 'of cookie'

const secretStems =
  /passw(?:or)?d|passphrase|passcode|passwort|secret|token|apikey|accesskey|privatekey|secretkey|sessionid|authorization|cvv/u
const secretWords = new Set(
  'pass pwd pw plaintext cleartext hash hashes ntlm pin otp totp cvc cvn ssn pan cardnumber authkey psk jwt bearer mnemonic seed'.split(
    ' ',
  ),
)
const cookieWords = new Set(['cookie', 'cookies', 'setcookie'])
const harmlessInCookie = new Set(
  'host hostkey domain path name browser url site expires expiresutc expirationdate expiry httponly issecure secure samesite ishttponly creationutc lastaccessutc'.split(
    ' ',
  ),
)
/** `known_password_id` and `hash_type` are about a secret, and none. */
const aboutSecret = new Set('id ids type types count at name names length policy'.split(' '))

/** How a member called `key` is treated, where what holds it is treated as `around`. */
export function treatmentOf(key: string, around: Treatment = 'shown'): Treatment {
  return key.split('.').reduce(treatmentOfSegment, around)
}

function treatmentOfSegment(around: Treatment, segment: string): Treatment {
  if (around === 'masked' || around === 'hidden' || /^\[?\d*\]?$/u.test(segment)) return around
  const words = wordsOf(segment)
  const whole = words.join('')
  if (around === 'cookie' || around === 'of cookie') {
    return harmlessInCookie.has(whole) ? 'of cookie' : 'hidden'
  }
  if (aboutSecret.has(words.at(-1) ?? '') && whole !== 'sessionid') return 'shown'
  if (cookieWords.has(whole) || words.some((word) => cookieWords.has(word))) return 'cookie'
  return secretStems.test(whole) || [whole, ...words].some((word) => secretWords.has(word))
    ? 'masked'
    : 'shown'
}

function wordsOf(segment: string): string[] {
  return segment
    .replaceAll(/(?<=[a-z0-9])(?=[A-Z])/gu, ' ')
    .toLowerCase()
    .split(/[^a-z0-9]+/u)
    .filter((word) => word !== '')
}

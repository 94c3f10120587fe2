/**
 * Tells a made-up string from what people write. Ordinary are words, names, numbers, dates, versions,
 * hosts, addresses without credentials, paths, handles and UUIDs.
 */

/** Returns every match of a global pattern that matches no empty text. */
export function findMatches(text: string, pattern: RegExp): RegExpExecArray[] {
  const found: RegExpExecArray[] = []
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) found.push(match)
  return found
}

/**
 * 0: an ordinary word. 1: letters with digits, as logins and product names have them too; a secret
 * only beside a word for a login or a secret. 2: a secret, wherever it stands.
 */
type Oddity = 0 | 1 | 2

/** Replaced by a space before tokens are read; each is bounded, so that no text is read twice. */
const ordinaryThings: readonly RegExp[] = [
  // addresses; the signs of addresses have judged their logins and keys
  /(?<![\p{L}\p{N}])[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'<>|;]{1,2000}/giu,
  /[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\[?\.\]?[\p{L}\p{N}-]{1,63}){1,6}/gu,
  // hosts and file names, also defanged, with port and path
  /(?<![\p{L}\p{N}_.-])[\p{L}\p{N}_-]{1,63}(?:\[?\.\]?[\p{L}\p{N}_-]{1,63}){0,6}\[?\.\]?(?:\p{L}{2,14}|7z|mp[34]|ps1|h5)(?![\p{L}\p{N}_]|\.[\p{L}\p{N}])(?::\d{1,5})?(?:\/[^\s"'<>|;]{0,500})?/gu,
  // paths
  /(?<![\p{L}\p{N}])[a-z]:\\[^\n"'<>|:]{0,260}/giu,
  /(?<![^\s"'(=:])[~.]{0,2}(?:\/[\p{L}\p{N}_.@%+~-]{1,80}){1,12}\/?(?:\?[^\s"'<>]{0,500})?(?![^\s"'),;:.])/gu,
  /(?<![\p{L}\p{N}])[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?![\p{L}\p{N}])/giu,
  /(?<![\p{L}\p{N}/])[a-z_]{3,40}(?:\/[\w.-]{1,80}){2,8}(?![\w/])/gu,
  // packages, and ids under their name
  /(?<![\p{L}\p{N}@])@?[a-z][a-z\d/._-]{1,60}@(?:v\d+(?:\.\d+){0,3}|\d+\.\d+\.\d+)(?![\p{L}\p{N}@])/gu,
  /(?<![\p{L}\p{N}])(?:hwid|[\w-]{1,30}_id|guid|build|req|1Z)["']?\s?[:=-]?\s?[\w-]{6,64}/giu,
  // addresses of machines
  /(?<![\p{L}\p{N}:])(?:[\da-f]{1,4}:{1,2}){3,31}[\da-f]{1,4}(?![\p{L}\p{N}:])/giu,
  // mentions, handles, hashtags and variables
  /(?<![\p{L}\p{N}])\$[a-z_]\w{1,40}(?=\)|->|\[|,\s?\$|\s?(?:={1,3}|!==?|\.|\?\?)\s)/giu,
  /<[!@#][\w^|-]{1,40}>/gu,
  /(?<![^\s(])(?:@|#|[ur]\/)[\p{L}_][\p{L}\p{N}_]{1,40}(?![\p{L}\p{N}!$%^&*])/gu,
  // wallets
  /(?<![\p{L}\p{N}])(?:bc1[a-z0-9]{25,60}|[13][1-9A-HJ-NP-Za-km-z]{25,34}|0x[\da-f]{40}|T[1-9A-HJ-NP-Za-km-z]{33})(?![\p{L}\p{N}])/giu,
]

/** Words that announce digests of files or the like. */
const digestWord =
  /(?<!\p{L})(?:md5|sha-?\d{1,3}|imphash|ssdeep|hash(?:es)?|commit|checksum|digest|fingerprint|iocs?|indicators?|samples?|virustotal|block|transaction|txid|magnet|ja3|serial|jarm|etag|trace\p{L}*|индикатор\p{L}*|х[эе]ш\p{L}*)(?!\p{L})/iu
const digest =
  /(?<![\p{L}\p{N}])(?:[\da-f]{7,12}|(?:0x)?(?:[\da-f]{32}|[\da-f]{40}|[\da-f]{62}|[\da-f]{64}|[\da-f]{128}))(?![\p{L}\p{N}])/giu

/** The last text that was read: several signs ask about the same. */
let known = { text: '', rest: '' }

/** Replaces ordinary things by spaces. */
export function withoutThings(text: string): string {
  if (known.text === text) return known.rest
  const others = ordinaryThings.reduce((left, thing) => left.replaceAll(thing, ' '), text)
  const rest = digestWord.test(text) ? others.replaceAll(digest, ' ') : others
  known = { text, rest }
  return rest
}

const token =
  /[^\s"'`()[\]{}<>,;:=|«»„“”‘’…¿¡\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}、-〿]{4,}/gu

/** Whether the text, from which ordinary things were taken, has a token of at least this oddity. */
export function holdsOdd(text: string, least: 1 | 2): boolean {
  return findMatches(text, token).some(([word]) => oddityOf(word) >= least)
}

const ordinaryWords: readonly RegExp[] = [
  // 50GB, 24/7, 1920x1080, 3rd, $40k, 2FA, 85k-105k
  /^\P{L}*\d[\d.,/x×-]*\p{L}{0,5}(?:[-–]\P{L}?\d[\d.,]*\p{L}{0,3})?[+%!?]*$/u,
  // versions, and names with one: v1.2.3-beta, nginx/1.18.0, OpenSSH_8.9p1
  /^(?:\p{L}+[-_/ ]?)?v?\d+(?:[._]\d+)+[\p{L}\d.+_-]{0,12}$|^\p{L}+[-_]v\d+$/u,
  // APT29, RTX4090, KB5034441, T1059.001, i7-9700
  /^(?:\p{Lu}{1,6}|\p{L}{1,2})-?\d{1,8}(?:[.-]\d{1,5})*\p{L}{0,2}$/u,
  // UTC+01, KH1188-RIPE, 0x5A4D, sha256WithRSA, 1st-level
  /^(?:UTC|GMT)[+-]\d{1,2}$|^\p{Lu}{2,4}\d{1,6}-\p{Lu}{3,7}$|^0x[\dA-Fa-f]{1,16}$|^(?:sha|md|rsa|aes)-?\d{1,4}(?:with\p{L}+)?$|^\d{1,3}\p{L}{0,2}(?:-\p{L}+)+$/iu,
  // ssh2, web01, 2pm
  /^\p{Ll}{3,4}\d{1,2}$/u,
  // CVE-2024-3400, AES-256-GCM, Storm-0558, well-known
  /^\p{L}+(?:[-/](?:\d{1,10}|\p{L}+))+$/u,
  // names that machines get, and BR/EU/US 10 and the like
  /^(?:DESKTOP|LAPTOP|WIN|PC|SRV|HOST)-[\dA-Z]{1,15}$/u,
  /^(?:Office|Windows|Exchange|Server|1Password|SharePoint|Outlook|Microsoft|Log4\p{L}+|Oauth2?|IPv[46]|Win(?:32|64)|Base64|Web3|Pwn2Own)\p{L}*\d{0,4}$/iu,
]

function oddityOf(raw: string): Oddity {
  const word = raw.replaceAll(/^[^\p{L}\p{N}$@!#]+|[^\p{L}\p{N}!#$%^&*@]+$/gu, '')
  if (word.length < 4 || !/\p{L}/u.test(word)) return 0
  if (/^\p{L}+$/u.test(word)) return hasWildCase(word) ? 2 : 0
  if (ordinaryWords.some((ordinary) => ordinary.test(word))) return 0
  const parts = word.split(/[-_./~\\]+/u)
  if (hasSign(word) || parts.some(isRandom)) return 2
  if (parts.filter((part) => countChanges(part) > 1).length > 1 || isChosen(word)) return 2
  return /\d|[!@#$%^&*]./u.test(word) ? 1 : 0
}

/** Whether a sign stands within the word, or behind letters with digits. */
function hasSign(word: string): boolean {
  if (word.length < 6) return false
  const within = /[\p{L}\p{N}][!#$%^]+[\p{L}\p{N}]|\p{L}{5}[#$^]$/u.test(word)
  const withDigit = /\d/u.test(word) && /[\p{L}\p{N}][@&*+?~]+[\p{L}\p{N}]|[!#$^&*@]$/u.test(word)
  return within || withDigit
}

/** What people choose: `jessica1994`, `Fatura.2023`, `raspberry_77`. */
function isChosen(word: string): boolean {
  if (/^\p{L}{4,}[._]?(?:19|20)\d\d$|^\p{L}{3,}(?:[._]\p{L}{3,}){0,4}[._]\d{2,4}$/u.test(word))
    return true
  if (/\d\.\d/u.test(word)) return false
  const isMixed = /\p{Lu}/u.test(word) && /\p{Ll}/u.test(word) && /\p{L}\d|\.\p{L}+\.\d/u.test(word)
  return isMixed && /[._]/u.test(word)
}

const camelWithNumber = /^\p{Lu}?\p{Ll}+(?:\p{Lu}\p{Ll}*)*\d{1,2}$/u

function isRandom(part: string): boolean {
  const changes = countChanges(part)
  if (/^\p{L}+$/u.test(part)) return hasWildCase(part)
  if (part.length >= 6 && /\p{Ll}/u.test(part) && /\p{Lu}/u.test(part) && changes > 0)
    return !camelWithNumber.test(part)
  if (part.length >= 16) return changes > 1
  return part.length >= 8 && changes > 3
}

/** How often letters and digits follow each other. */
function countChanges(part: string): number {
  return findMatches(part, /\p{L}(?=\d)|\d(?=\p{L})/gu).length
}

/** Whether capitals stand as in `xKqPzRtWvB`, and not as in `getElementById`. */
function hasWildCase(word: string): boolean {
  const humps = findMatches(word, /\p{Ll}(?=\p{Lu})/gu).length
  return word.length >= 8 && humps > 2 && word.length < 3 * (humps + 1)
}

/**
 * Makes untrusted text safe to show. All that remains is visible, and nothing in it moves a cursor,
 * hides, reverses or stacks the text around it. Sinks escape markup.
 */

const lineBreaks = /\r\n?|[\n\v\f\u0085\u2028\u2029]/gu
const spaces = /[\t\p{Z}]/gu
/**
 * Control, format (zero-width, bidi, tag) and other ignorable characters (variation selectors,
 * fillers).
 */
const invisibleCharacters =
  /(?!\n)[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu
/** Marks piled on one letter cover the lines around it. */
const piledMarks = /(\p{M}{4})\p{M}+/gu

/**
 * Returns one line of at most `maxLength` code points, the ellipsis included. It has no line break,
 * control, zero-width, bidi or tag character, and no lone surrogate. It has single spaces and is
 * trimmed. Idempotent.
 */
export function cleanLine(text: string, maxLength: number): string {
  return cutText(removeInvisible(text).replace(/\s+/gu, ' ').trim(), maxLength)
}

/**
 * As `cleanLine`, but keeps single newlines and counts what is cut: "the text (… 12 more
 * characters)", at most `maxLength` code points in all.
 */
export function cleanBlock(text: string, maxLength: number): string {
  const lines = removeInvisible(text)
    .split('\n')
    .map((line) => line.replace(/\s+/gu, ' ').trim())
  return cutWithCount(lines.filter((line) => line !== '').join('\n'), maxLength)
}

/** Cuts to `maxLength` code points, the last an ellipsis if something was cut. */
export function cutText(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  const characters = Array.from(text)
  if (characters.length <= maxLength) return text
  const beginning = characters.slice(0, Math.max(0, maxLength - 1 - isolateRoom(text))).join('')
  return `${closeIsolate(beginning.trimEnd())}…`
}

/** Letters of Hebrew, Arabic and whatever else Unicode keeps for text from right to left. */
const rightToLeft =
  /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u
/** First strong isolate and its end; cleaned text of others has neither. */
const isolateStart = '\u2068'
const isolateEnd = '\u2069'

/**
 * Keeps text that is written from right to left from reordering what stands beside it on its line.
 * Not for what people copy.
 */
export function isolate(text: string): string {
  return rightToLeft.test(text) ? `${isolateStart}${text}${isolateEnd}` : text
}

/** What a cut of `text` keeps free for `closeIsolate`, in characters. */
export function isolateRoom(text: string): number {
  return text.includes(isolateStart) ? 1 : 0
}

/** Ends the isolate that a cut left open. */
export function closeIsolate(beginning: string): string {
  const isOpen = beginning.lastIndexOf(isolateStart) > beginning.lastIndexOf(isolateEnd)
  return isOpen ? beginning + isolateEnd : beginning
}

/** Cuts to `maxLength` code points; the cut says how much is missing if there is room for it. */
export function cutWithCount(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  const characters = Array.from(text)
  if (characters.length <= maxLength) return text
  const room = maxLength - ` (… ${characters.length} more characters)`.length
  if (room < 1) return cutText(text, maxLength)
  const beginning = characters.slice(0, room).join('').trimEnd()
  return `${beginning} (… ${characters.length - room} more characters)`
}

/** Removes what cannot be seen or turns, hides or stacks the text around it; keeps line breaks. */
export function removeInvisible(text: string): string {
  return text
    .toWellFormed()
    .replace(lineBreaks, '\n')
    .replace(spaces, ' ')
    .replace(invisibleCharacters, '')
    .replace(piledMarks, '$1')
}

/** Single spaces, visible ASCII, Western letters and the marks of our own titles: nothing to clean. */
const isClean = /^[!-~·À-ÿ–…]+(?: [!-~·À-ÿ–…]+)*$/u

/** Cleans, defangs, then cuts to code points: in this order a cut text has no links either. */
export function sanitizeLine(text: string, maxLength: number): string {
  // Cleaning usually removes few characters, so an endless text need not be read to its end.
  const readLength = 8 * maxLength + 200
  if (text.length > readLength) {
    const beginning = text.slice(0, readLength).replace(/[\uD800-\uDBFF]$/u, '')
    return cutText(`${defang(cleanLine(beginning, Infinity))}…`, maxLength)
  }
  return cutText(defang(isClean.test(text) ? text : cleanLine(text, Infinity)), maxLength)
}

const webScheme = /https?(?=:[/\\]{2})/giu
const otherScheme = /(?<!hxxps?):\/\//giu
/**
 * Schemes that act without `//`: mail programs, chats and telephones link them, or hand them to
 * another program. Words that usually label a value (`data:`, `line:`, `market:`) are left out.
 */
const actingSchemes = [
  'tel telnet callto sms smsto mms mmsto mailto sips? skype facetime(?:-audio|-video)? geo whatsapp viber',
  'xmpp irc webcal tg zoommtg zoomus msteams file ftp smb nfs ldaps? news nntp gopher javascript vbscript',
  'view-source jar mk magnet bitcoin ethereum litecoin monero lightning onenote outlook search-ms',
  'ms-[a-z-]{1,30} microsoft-edge vscode(?:-insiders)? vnc rdp ssh itms-?[a-z]{0,20} intent',
]
const actingScheme = new RegExp(
  String.raw`(?<![A-Za-z0-9_])(${actingSchemes.join(' ').replaceAll(' ', '|')}):(?=[^\s[])`,
  'giu',
)
/** `\\host`, unless a drive (`C:\\Users`, as source code writes it) or a word precedes it. */
const windowsShare =
  /(?<![A-Za-z0-9_]|(?<![A-Za-z])[A-Za-z]:)\\\\(?=[\p{L}\p{N}_?.%]|\[(?!\\\\\]))/gu
const slashedShare = /(?<![A-Za-z0-9_/]|\[:\]|hxxps?:)\/\/(?=[\p{L}\p{N}\p{M}_.%-]+\/)/giu
/** Characters that linkifiers or browsers read as the dot of a domain name. */
const dots = /[.․。．｡]/gu
const dottedChain =
  /(?<![\p{L}\p{N}\p{M}\p{So}_-])[\p{L}\p{N}\p{M}\p{So}_-]+(?:[.․。．｡][\p{L}\p{N}\p{M}\p{So}_-]+)+/gu

/** Each scheme with slashes and each share has one of these pairs. */
const slashPair = /[:/\\][/\\]/u
/** Each scheme that acts without `//` has one of these. */
const tightColon = /:[^\s[]/u
/** Each dotted chain has one of these, and no name that is defanged already. */
const innerDot = /[^\s[\]][.․。．｡][^\s[\]]/u

/**
 * Removes links from text without losing the meaning: `https://evil.com` becomes
 * `hxxps://evil[.]com`, `joe@acme.com` becomes `joe@acme[.]com`, `tel:117` becomes `tel[:]117`.
 * Covers schemes, domain names in any script, e-mail addresses, IPv4 addresses and paths to shares
 * of another machine (`\\host\share`, `//host/share`). Numbers, versions and prices stay. What is
 * left holds no `://` except after hxxp and no dotted name. Idempotent.
 */
export function defang(text: string): string {
  const hasSlashes = slashPair.test(text)
  const unlinked = hasSlashes ? defangSchemes(text) : text
  const inert = tightColon.test(unlinked) ? unlinked.replace(actingScheme, '$1[:]') : unlinked
  const unshared = hasSlashes ? defangShares(inert) : inert
  return innerDot.test(unshared) ? defangNames(unshared) : unshared
}

function defangSchemes(text: string): string {
  return text
    .replace(webScheme, (scheme) => (scheme.length === 5 ? 'hxxps' : 'hxxp'))
    .replace(otherScheme, '[:]//')
}

function defangShares(text: string): string {
  return text.replace(slashedShare, '[//]').replace(windowsShare, String.raw`[\\]`)
}

function defangNames(text: string): string {
  return text.replace(dottedChain, (chain) =>
    looksLikeName(chain) ? chain.replace(dots, '[.]') : chain,
  )
}

/** Undoes `defang` and `isolate`, for what an operator copies out of a message into a command. */
export function refang(text: string): string {
  return text
    .replace(/[\u2068\u2069]/gu, '')
    .replace(/\[(\.|:|\/\/|\\\\)\]/gu, '$1')
    .replace(/\bhxxp(s?):(?=[/\\]{2})/giu, 'http$1:')
}

/**
 * `www`, a top-level domain of two letters or more, or an IPv4 address: `12.50` is none of them.
 */
function looksLikeName(chain: string): boolean {
  const name = chain.replace(dots, '.')
  return /www\.|\d\.\d+\.\d+\.\d|\.[^.]*(?:[\p{L}\p{M}]{2}|--)/iu.test(name)
}

/**
 * Takes the link out of text without taking the meaning: `https://evil.com` becomes
 * `hxxps://evil[.]com`, `joe@acme.com` becomes `joe@acme[.]com`, `tel:117` becomes `tel[:]117`. What is
 * meant for no link: schemes, domain names in any script, e-mail addresses, IPv4 addresses, paths to shares
 * of another machine (`\\host\share`, `//host/share`). Numbers, versions and prices stay.
 */

const webScheme = /https?(?=:[/\\]{2})/giu
const otherScheme = /(?<!hxxps?):\/\//giu
/**
 * Schemes that act without `//`: mail programs, chats and telephones link them, or hand them to another
 * program. Not among them: words that usually label a value (`data:`, `line:`, `market:`).
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
/** `\\host`: no drive (`C:\\Users`, as source code writes it) and no word stands before it. */
const windowsShare =
  /(?<![A-Za-z0-9_]|(?<![A-Za-z])[A-Za-z]:)\\\\(?=[\p{L}\p{N}_?.%]|\[(?!\\\\\]))/gu
const slashedShare = /(?<![A-Za-z0-9_/]|\[:\]|hxxps?:)\/\/(?=[\p{L}\p{N}\p{M}_.%-]+\/)/giu
/** Characters that linkifiers or browsers read as the dot of a domain name. */
const dots = /[.․。．｡]/gu
const dottedChain =
  /(?<![\p{L}\p{N}\p{M}\p{So}_-])[\p{L}\p{N}\p{M}\p{So}_-]+(?:[.․。．｡][\p{L}\p{N}\p{M}\p{So}_-]+)+/gu

/** Without one of these there is nothing to defang. */
export const linkMarks = /[.․。．｡:]|\/\/|\\\\/u

/** Idempotent. No link of any client's making is left: no `://` but after hxxp, no dotted name. */
export function defang(text: string): string {
  return text
    .replace(webScheme, (scheme) => (scheme.length === 5 ? 'hxxps' : 'hxxp'))
    .replace(otherScheme, '[:]//')
    .replace(actingScheme, '$1[:]')
    .replace(windowsShare, String.raw`[\\]`)
    .replace(slashedShare, '[//]')
    .replace(dottedChain, (chain) => (looksLikeName(chain) ? chain.replace(dots, '[.]') : chain))
}

/** The text before `defang`, for what an operator copies out of a message back into a command. */
export function refang(text: string): string {
  return text
    .replace(/\[(\.|:|\/\/|\\\\)\]/gu, '$1')
    .replace(/\bhxxp(s?):(?=[/\\]{2})/giu, 'http$1:')
}

/** `www`, a top-level domain of two letters or more, or an IPv4 address: `12.50` is none of them. */
function looksLikeName(chain: string): boolean {
  const name = chain.replace(dots, '.')
  return /www\.|\d\.\d+\.\d+\.\d|\.[^.]*(?:[\p{L}\p{M}]{2}|--)/iu.test(name)
}

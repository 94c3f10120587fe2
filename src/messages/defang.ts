/**
 * Takes the link out of text without taking the meaning: `https://evil.com` becomes
 * `hxxps://evil[.]com`, `joe@acme.com` becomes `joe@acme[.]com`. What is meant for no link: schemes,
 * domain names in any script, e-mail addresses, IPv4 addresses. Numbers, versions and prices stay.
 */

const webScheme = /https?(?=:\/\/)/giu
const otherScheme = /(?<!hxxps?):\/\//giu
/** Characters that linkifiers or browsers read as the dot of a domain name. */
const dots = /[.․。．｡]/gu
const dottedChain =
  /(?<![\p{L}\p{N}\p{M}\p{So}_-])[\p{L}\p{N}\p{M}\p{So}_-]+(?:[.․。．｡][\p{L}\p{N}\p{M}\p{So}_-]+)+/gu

/** Idempotent. No link of any client's making is left: no `://` but after hxxp, no dotted name. */
export function defang(text: string): string {
  return text
    .replace(webScheme, (scheme) => (scheme.length === 5 ? 'hxxps' : 'hxxp'))
    .replace(otherScheme, '[:]//')
    .replace(dottedChain, (chain) => (looksLikeName(chain) ? chain.replace(dots, '[.]') : chain))
}

/** The text before `defang`, for what an operator copies out of a message back into a command. */
export function refang(text: string): string {
  return text
    .replaceAll('[.]', '.')
    .replaceAll('[:]//', '://')
    .replace(/\bhxxp(s?):\/\//giu, 'http$1://')
}

/** `www`, a top-level domain of two letters or more, or an IPv4 address: `12.50` is none of them. */
function looksLikeName(chain: string): boolean {
  const name = chain.replace(dots, '.')
  return /www\.|\d\.\d+\.\d+\.\d|\.[^.]*(?:[\p{L}\p{M}]{2}|--)/iu.test(name)
}

/** Which addresses lead to an account's service: only those are shown so that somebody can click them. */
import { refusal, type Refusal } from '../lib/config-fields.ts'

interface LinkSource {
  /** Of the account. */
  name: string
  baseUrl: string
  linkHosts: readonly string[]
}

/**
 * Gives an address as it may be clicked, or null: it leads elsewhere, carries a login or another port, or
 * the account is not configured (any more).
 */
export function createLinkFilter(
  accounts: readonly LinkSource[],
): (account: string, url: string | null) => string | null {
  const rules = new Map(accounts.map((account) => [account.name, linkRule(account)]))
  return (account, url) => (url === null ? null : (rules.get(account)?.(url) ?? null))
}

/** https to a host of the service, on the default port or that of `base_url`; http where `base_url` itself is. */
function linkRule({ baseUrl, linkHosts }: LinkSource): (text: string) => string | null {
  const base = new URL(baseUrl)
  const hosts = [...baseHosts(baseUrl), ...linkHosts]
  const ports = ['', base.protocol === 'https:' ? base.port : '']
  return (text) => {
    const url = URL.parse(text)
    if (url === null || url.username !== '' || url.password !== '') return null
    const isEncrypted = url.protocol === 'https:' && ports.includes(url.port)
    if (!isEncrypted && url.origin !== base.origin) return null
    if (url.hostname.split('.').includes('')) return null // a name with an empty label is nobody's
    return hosts.some((host) => covers(host, url.hostname)) ? url.href : null
  }
}

/** Entries that allow nothing more than `base_url` or another entry does. */
export function redundantLinkHosts({ baseUrl, linkHosts }: LinkSource): string[] {
  const [own, ...derived] = baseHosts(baseUrl)
  return linkHosts.filter((entry, at) => {
    const others = linkHosts.filter((other, i) => i < at || other !== entry)
    return entry !== own && [...derived, ...others].some((host) => covers(host, entry))
  })
}

/** Whether no other host than that of `base_url` follows from it, and none is named. */
export function linksOnlyToBase({ baseUrl, linkHosts }: LinkSource): boolean {
  return linkHosts.length === 0 && baseHosts(baseUrl).length === 1
}

/**
 * The host of `base_url`; of one that is called `api`, also the domain above it with all below: the web
 * application of `api.example.com` is `app.example.com`. Of any other name, an address or a name of one
 * label nothing follows: strangers may have hosts beside it (`tocsin.github.io`).
 */
function baseHosts(baseUrl: string): string[] {
  const { hostname } = new URL(baseUrl)
  const [first, ...above] = hostname.replace(/\.$/u, '').split('.')
  return first === 'api' && !mayBePublicSuffix(above)
    ? [hostname, `.${above.join('.')}`]
    : [hostname]
}

/** Under the two letters of a country: for companies, offices, schools and so on. */
const registryLabels = new Set(
  'ac asso co com edu firm go gob gouv gov govt gv id info ltd me mil ne net nom or org plc priv sch school'.split(
    ' ',
  ),
)

/** `com`, `co.uk`, `gouv.fr`: where anybody may have a domain. */
function isPublicSuffix(labels: readonly string[]): boolean {
  const [second = '', top = ''] = labels
  if (labels.length !== 2) return labels.length < 2
  return top.length === 2 && registryLabels.has(second)
}

/** Whether it may be one that `registryLabels` does not know: what nobody wrote out is rather not trusted. */
function mayBePublicSuffix(labels: readonly string[]): boolean {
  const [second = '', top = ''] = labels
  return isPublicSuffix(labels) || (labels.length === 2 && top.length === 2 && second.length <= 3)
}

/** `host` is exact, or begins with a dot: that domain and everything below. */
function covers(host: string, hostname: string): boolean {
  if (!host.startsWith('.')) return host === hostname
  return hostname.endsWith(host) || `.${hostname}` === host
}

const remedy = 'write a host such as app.example.com, or .example.com for all hosts of a domain'

/** One entry of `link_hosts` in the form in which URLs have hosts: lower case, Punycode. */
export function readLinkHost(input: string): string | Refusal {
  const [, dot = '', name = ''] = /^(\.?)(.*)$/u.exec(input.trim()) ?? []
  const isHost = /^(?:[\p{L}\p{N}\p{M}_-]+\.)*[\p{L}\p{N}\p{M}_-]+$|^\[[\da-f:.]+\]$/iu.test(name)
  const hostname = isHost ? (URL.parse(`https://${name}`)?.hostname ?? '') : ''
  if (hostname === '') return refusal('not the name of a host', remedy)
  if (dot === '') return hostname
  return isPublicSuffix(hostname.split('.')) || /^\[|^[\d.]+$/u.test(hostname)
    ? refusal('allows the hosts of strangers', remedy)
    : `.${hostname}`
}

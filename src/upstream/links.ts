/** Which event links lead to an account's own hosts. Only those are rendered as clickable links. */
import { refusal, type Refusal } from '../lib/config/config-fields.ts'

interface LinkSource {
  /** The account's name. */
  name: string
  baseUrl: string
  linkHosts: readonly string[]
}

/**
 * Returns a filter that gives a URL in its clickable form. The filter returns null if the URL leads
 * elsewhere, has a login or another port, or if the account is not (or no longer) configured.
 */
export function createLinkFilter(
  accounts: readonly LinkSource[],
): (account: string, url: string | null) => string | null {
  const rules = new Map(accounts.map((account) => [account.name, linkRule(account)]))
  return (account, url) => (url === null ? null : (rules.get(account)?.(url) ?? null))
}

/** A DNS name or an IPv6 address. URLs allow more, such as `ap"p.example.com`. */
const hostnamePattern = /^(?:[a-z0-9_-]+\.)*[a-z0-9_-]+$|^\[[\da-f:]+\]$/u

/**
 * Allows https to a known host, on the default port or that of `base_url`; http only if the URL has
 * the origin of `base_url`.
 */
function linkRule({ baseUrl, linkHosts }: LinkSource): (text: string) => string | null {
  const base = new URL(baseUrl)
  const hosts = [...baseHosts(baseUrl), ...linkHosts]
  const ports = ['', base.protocol === 'https:' ? base.port : '']
  return (text) => {
    const url = URL.parse(text)
    if (url === null || url.username !== '' || url.password !== '') return null
    const isEncrypted = url.protocol === 'https:' && ports.includes(url.port)
    if (!isEncrypted && url.origin !== base.origin) return null
    if (!hostnamePattern.test(url.hostname)) return null
    return hosts.some((host) => covers(host, url.hostname)) ? url.href : null
  }
}

/** Whether links may lead only to the host of `base_url`: none is implied or configured. */
export function linksOnlyToBase({ baseUrl, linkHosts }: LinkSource): boolean {
  return linkHosts.length === 0 && baseHosts(baseUrl).length === 1
}

/**
 * The host of `base_url`. If it is named `api`, also the domain above it with every host below: the
 * web application of `api.example.com` is `app.example.com`. Any other name, an IP address or a
 * name of one label implies nothing more: strangers may own the hosts beside it
 * (`tocsin.github.io`).
 */
function baseHosts(baseUrl: string): string[] {
  const { hostname } = new URL(baseUrl)
  const [first, ...above] = hostname.replace(/\.$/u, '').split('.')
  return first === 'api' && !mayBePublicSuffix(above)
    ? [hostname, `.${above.join('.')}`]
    : [hostname]
}

/** Second-level labels under country domains where anybody may register a name. */
const registryLabels = new Set(
  'ac asso co com edu firm go gob gouv gov govt gv id info ltd me mil ne net nom or org plc priv sch school'.split(
    ' ',
  ),
)

/** Whether anybody may register a domain here: `com`, `co.uk`, `gouv.fr`. */
function isPublicSuffix(labels: readonly string[]): boolean {
  const [second = '', top = ''] = labels
  if (labels.length !== 2) return labels.length < 2
  return top.length === 2 && registryLabels.has(second)
}

/** Whether it may be a public suffix that `registryLabels` lacks. In doubt, it is not trusted. */
function mayBePublicSuffix(labels: readonly string[]): boolean {
  const [second = '', top = ''] = labels
  return isPublicSuffix(labels) || (labels.length === 2 && top.length === 2 && second.length <= 3)
}

/** `host` is an exact name, or begins with a dot and means that domain and every host below it. */
function covers(host: string, hostname: string): boolean {
  if (!host.startsWith('.')) return host === hostname
  return hostname.endsWith(host) || `.${hostname}` === host
}

const remedy = 'write a host such as app.example.com, or .example.com for all hosts of a domain'

/** Returns one entry of `link_hosts` in the form that URLs use: lower case, Punycode. */
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

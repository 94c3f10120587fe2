/**
 * How connections leave a company's network: its proxy and its certificate authorities. Accounts, sinks
 * and the ping have the same keys for it.
 */
import { isIP } from 'node:net'
import type { z } from 'zod'
import { refusal, type Refusal, type Rule, text, textField } from './config-fields.ts'
import {
  certificateFileRule,
  type Secret,
  secretFromSection,
  secretKeys,
  secretRule,
} from './secret.ts'
import { loginProblem } from './web-address.ts'

export interface Outbound {
  /** URL of an HTTP proxy; may hold a password. */
  proxy?: Secret | undefined
  /** Hosts that are reached without it, as `NO_PROXY` lists them. */
  noProxy?: readonly string[] | undefined
  /** PEM file of further certificate authorities. */
  caFile?: string | undefined
}

const noProxyRemedy = 'write hosts with commas between, such as localhost, .example.com, 10.0.0.0/8'

export const outboundKeys = {
  ...secretKeys(
    'proxy',
    'URL of an HTTP proxy; every connection is a tunnel through it (CONNECT).',
  ),
  no_proxy: textField({
    describe:
      'Hosts reached without the proxy, with commas between. A name covers all names below it; an address may have a prefix length.',
    remedy: noProxyRemedy,
    examples: ['localhost, .example.com, 10.0.0.0/8'],
    parse: readNoProxy,
  }).optional(),
  ca_file: text('PEM file of further certificate authorities.').optional(),
}

export const outboundRules: Rule[] = [
  secretRule('proxy', { required: false, check: proxyProblem }),
  certificateFileRule('ca_file'),
]

export function readOutbound(file: z.output<z.ZodObject<typeof outboundKeys>>): Outbound {
  return {
    proxy: secretFromSection(file, 'proxy'),
    noProxy: file.no_proxy,
    caFile: file.ca_file,
  }
}

/** Returns what is wrong with the address of a proxy, without quoting it. */
export function proxyProblem(input: string): Refusal | undefined {
  const url = URL.parse(input)
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    return refusal('not the address of a proxy', 'write a URL such as http://proxy.example:3128')
  }
  return loginProblem(url)
}

function readNoProxy(input: string): string[] | Refusal {
  const hosts = input
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((host) => host !== '')
  const isHost = (host: string): boolean =>
    isNetwork(host) || (/^\.?[a-z0-9_-][a-z0-9._-]*$/.test(host) && !/^[\d.]+$/.test(host))
  if (!hosts.every(isHost)) return refusal('not a list of hosts', noProxyRemedy)
  return hosts.map((host) => host.replace(/\.$/, ''))
}

/** An address, or one with the length of its prefix. */
function isNetwork(host: string): boolean {
  const [address = '', length = '0'] = host.split('/')
  const version = isIP(address)
  return version !== 0 && /^\d{1,3}$/.test(length) && Number(length) <= (version === 4 ? 32 : 128)
}

/** Tests whether an account's key works, and reports what is wrong and what to do. */
import type { Refusal } from '../../lib/config/config-fields.ts'
import type { UpstreamClient } from '../client.ts'
import { UpstreamError, type UpstreamFault, type UpstreamReason } from '../error.ts'

export interface Diagnosis {
  /** Whether the key works, and what the service says of it. */
  detail: string
  /** What to do about a key that does not work; undefined: it works. */
  remedy: string | undefined
  /** What is wrong beside the key. */
  warnings: Warning[]
}

interface Warning extends Refusal {
  about: 'tenant' | 'clock'
}

/** A larger skew makes token lifetimes and time filters wrong. */
const toleratedSkewMs = 2 * 60_000

export async function diagnoseKey(
  client: UpstreamClient,
  signal?: AbortSignal,
): Promise<Diagnosis> {
  try {
    const grant = await client.testToken(signal ? { signal } : {})
    const { organizationId = 'not stated', tenantId = 'not stated', userEmail } = grant
    return {
      detail: `works; organization ${organizationId}, tenant ${tenantId}, user ${userEmail ?? 'not stated'}`,
      remedy: undefined,
      warnings: [...tenantWarnings(client, grant.tenantId), ...clockWarnings(client)],
    }
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    const detail = `could not be used: ${error.message}`
    return { detail, remedy: adviceFor(error, client), warnings: clockWarnings(client) }
  }
}

const adviceByFault: Record<UpstreamFault, string> = {
  dns: 'check the host name in base_url, and that this machine can resolve it',
  refused:
    'check host and port in base_url, and whether a firewall or a missing proxy is in the way',
  cut: 'try again; if it stays so, look for a firewall or proxy between here and the service',
  unsent: 'try again: the next request asks for another token',
  tls: 'mend what is said of the certificate; a proxy that re-signs TLS has an authority of its own, for ca_file',
  scheme: 'correct the port or the beginning of base_url, or of proxy if there is one',
  proxy: 'check the address and credentials in proxy, and that the proxy may reach the service',
  redirect: 'set base_url to the final address; Tocsin never sends a key along a redirect',
  html: 'base_url leads to a web page: use the address of the API, not of the web application',
  not_http: 'check the scheme (https) and the port in base_url',
  too_large: 'check base_url: it seems to lead to something else than the API',
}

const adviceByReason: Record<UpstreamReason, string> = {
  auth: 'check the API key: make a new one in the profile page of the service and replace it',
  rate_limited:
    'something else uses up the limit of this organization; try again later, or lower limits',
  rejected: 'check base_url: it must end before "/tokens" and "/firework"',
  invalid: 'this is a defect of Tocsin: please report it',
  unavailable: 'the service has trouble of its own; try again later',
  timeout: 'check base_url, firewall and proxy; the service may also be slow just now',
  contract: 'check that base_url is the address of the API',
}

function adviceFor({ reason, status, fault }: UpstreamError, client: UpstreamClient): string {
  if (fault !== undefined) return adviceByFault[fault]
  if (reason !== 'auth' || status !== 403) return adviceByReason[reason]
  const { tenantId } = client.account
  if (tenantId === undefined) return "the key's user lacks a permission; ask an administrator"
  return `the key's user has no access to tenant ${tenantId}: take a tenant_id from the profile page, or ask an administrator`
}

function tenantWarnings(
  { account }: UpstreamClient,
  answeredTenant: number | undefined,
): Warning[] {
  const configuredTenant = account.tenantId
  if (
    configuredTenant === undefined ||
    answeredTenant === undefined ||
    configuredTenant === answeredTenant
  )
    return []
  const problem = `tenant ${configuredTenant} is configured, but the service answers for tenant ${answeredTenant}`
  return [{ about: 'tenant', problem, remedy: 'correct tenant_id' }]
}

function clockWarnings(client: UpstreamClient): Warning[] {
  const skewMs = client.clockSkewMs() ?? 0
  if (Math.abs(skewMs) <= toleratedSkewMs) return []
  const minutes = Math.round(Math.abs(skewMs) / 60_000)
  const side = skewMs > 0 ? 'behind' : 'ahead of'
  const problem = `this machine's clock is ${minutes} min ${side} the service's`
  return [{ about: 'clock', problem, remedy: 'set it by NTP' }]
}

/** Tests whether an account's key works, and reports what is wrong and what to do. */
import type { Refusal } from '../../lib/config/config-fields.ts'
import type { UpstreamClient } from '../client.ts'
import { UpstreamError, type UpstreamFault, type UpstreamReason } from '../error.ts'

export interface Diagnosis {
  ok: boolean
  /** Everything below, a sentence each. */
  lines: string[]
  /** Whether the key works, and what the service says of it. */
  facts: string[]
  /** What to do about a key that does not work. */
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
    const { limits, name } = client.account
    const facts = [
      `The key of account "${name}" works.`,
      `Organization ${grant.organizationId ?? 'not stated'}, tenant ${grant.tenantId ?? 'not stated'}, user ${grant.userEmail ?? 'not stated'}.`,
      `Scopes: ${grant.scopes.join(', ') || 'none stated'}.`,
      `Limits used: search ${limits.search}/s, basic ${limits.basic}/s, for the whole organization.`,
    ]
    const warnings = [...tenantWarnings(client, grant.tenantId), ...clockWarnings(client)]
    return toDiagnosis(facts, undefined, warnings)
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    const facts = [
      `The key of account "${client.account.name}" could not be used: ${error.message}.`,
    ]
    return toDiagnosis(facts, adviceFor(error, client), clockWarnings(client))
  }
}

function toDiagnosis(facts: string[], remedy: string | undefined, warnings: Warning[]): Diagnosis {
  const warned = warnings.map(({ problem, remedy: toDo }) => `Warning: ${problem}; ${toDo}.`)
  const advice = remedy === undefined ? [] : [remedy]
  const lines = [...facts, ...advice, ...warned]
  return { ok: remedy === undefined, lines, facts, remedy, warnings }
}

const adviceByFault: Record<UpstreamFault, string> = {
  dns: 'Check the host name in base_url, and that this machine can resolve it.',
  refused:
    'Check host and port in base_url, and whether a firewall or a missing proxy is in the way.',
  cut: 'Try again; if it stays so, look for a firewall or proxy between here and the service.',
  unsent: 'Try again: the next request asks for another token.',
  tls: 'Mend what is said of the certificate; a proxy that re-signs TLS has an authority of its own, for ca_file.',
  scheme: 'Correct the port or the beginning of base_url, or of proxy if there is one.',
  proxy: 'Check the address and credentials in proxy, and that the proxy may reach the service.',
  redirect: 'Set base_url to the final address; Tocsin never sends a key along a redirect.',
  html: 'base_url leads to a web page: use the address of the API, not of the web application.',
  not_http: 'Check the scheme (https) and the port in base_url.',
  too_large: 'base_url seems to lead to something else than the API.',
}

const adviceByReason: Record<UpstreamReason, string> = {
  auth: 'Check the API key: make a new one in the profile page of the service and replace it.',
  rate_limited:
    'Something else uses up the limit of this organization; try again later, or lower limits.',
  rejected: 'Check base_url: it must end before "/tokens" and "/firework".',
  invalid: 'This is a defect of Tocsin: please report it.',
  unavailable: 'The service has trouble of its own; try again later.',
  timeout: 'Check base_url, firewall and proxy; the service may also be slow just now.',
  contract: 'Check that base_url is the address of the API.',
}

function adviceFor({ reason, status, fault }: UpstreamError, client: UpstreamClient): string {
  if (fault !== undefined) return adviceByFault[fault]
  if (reason !== 'auth' || status !== 403) return adviceByReason[reason]
  const { tenantId } = client.account
  if (tenantId === undefined) return "The key's user lacks a permission; ask an administrator."
  return `The key's user has no access to tenant ${tenantId}: take a tenant_id from the list in the profile page, or ask an administrator.`
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

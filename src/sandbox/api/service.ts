/** The pretend service: every operation of the API, behind rate limits and tokens. */
import type { FastifyInstance } from 'fastify'
import type { Credentials } from '../credentials/credentials.ts'
import { credentialRoutes } from '../credentials/routes.ts'
import type { History } from '../history/history.ts'
import { assetRoutes } from '../monitoring/assets.ts'
import type { Monitoring } from '../monitoring/monitoring.ts'
import { policyRoutes } from '../monitoring/policies.ts'
import type { SandboxSettings } from '../options.ts'
import { createReports, reportRoutes, type Reports } from './reports.ts'
import type { RequestLog } from '../server.ts'
import { createRateWindows, createTokens, guard, type TokenControl } from './guard.ts'
import { legacyRoutes } from './legacy-search.ts'
import { createPages } from './pages.ts'
import { addRoutes } from './routes.ts'
import { createSearchQuota, type SearchQuota } from './search-quota.ts'
import { eventRoutes } from './search.ts'
import { createTenants, tenantRoutes } from './tenants.ts'

export interface PretendService extends Pick<Reports, 'addReportRequest'> {
  tokens: TokenControl
  /** From now on refuses (400) every cursor issued so far. */
  expireCursors: () => void
  violations: () => Violations
  quota: Pick<SearchQuota, 'remaining'>
}

/** Counts of what no client should ever do. */
interface Violations {
  /** Requests that came sooner than a limit allows. */
  rate: number
  /** Cursors that came back with other parameters than they were issued for. */
  changedScans: number
}

interface ServiceParts {
  settings: SandboxSettings
  history: History
  credentials: Credentials
  monitoring: Monitoring
  log: RequestLog
}

export function addService(root: FastifyInstance, given: ServiceParts): PretendService {
  const { settings, history, monitoring, log } = given
  const { organizations, now } = settings
  const tenants = createTenants(settings)
  const listTenants = (key: string): number[] => tenants.ofKey(key).map(({ id }) => id)
  const tokens = createTokens({ organizations, now, listTenants })
  const rates = createRateWindows(organizations)
  const quota = createSearchQuota(settings)
  const pages = createPages(settings)
  const reports = createReports(settings, history.all)
  const identifier = (id: number): { tenantId: number } | undefined => monitoring.assets.get(id)
  const parts = { ...given, quota, pages, identifier }
  const routes = [
    ...tenantRoutes({ settings, tenants, tokens }),
    ...eventRoutes(parts),
    ...legacyRoutes(parts),
    ...credentialRoutes(parts),
    ...assetRoutes(parts),
    ...policyRoutes(parts),
    ...reportRoutes(reports, pages),
  ]
  void root.register((app, _options, done) => {
    guard(app, { settings, tokens, rates, log })
    addRoutes(app, routes, { tokens, log })
    done()
  })
  return {
    tokens,
    quota,
    addReportRequest: reports.addReportRequest,
    expireCursors: pages.expireAll,
    violations: () => ({ rate: rates.violations(), changedScans: pages.changedScans() }),
  }
}

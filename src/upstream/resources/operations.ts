/** The table of all operations of the API. */
import { assetOperations } from './assets.ts'
import { credentialOperations } from './credentials.ts'
import { eventOperations } from './events.ts'
import { identifierOperations } from './identifiers.ts'
import { legacySearchOperations } from './legacy-search.ts'
import type { Operation } from './operation.ts'
import { policyOperations } from './policies.ts'
import { reportOperations } from './reports.ts'
import { serviceOperations, tenantOperations } from './tenants.ts'

export const operations: readonly Operation[] = [
  eventOperations,
  legacySearchOperations,
  credentialOperations,
  identifierOperations,
  assetOperations,
  policyOperations,
  reportOperations,
  tenantOperations,
  serviceOperations,
].flatMap((resource): Operation[] => Object.values(resource))

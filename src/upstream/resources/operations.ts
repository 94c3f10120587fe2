/** All operations of the API except its tokens; one file per resource. */
import { type AssetOperations, createAssetOperations } from './assets.ts'
import { createCredentialOperations, type CredentialOperations } from './credentials.ts'
import { createEventOperations, type EventOperations } from './events.ts'
import { createIdentifierOperations, type IdentifierOperations } from './identifiers.ts'
import { createLegacySearchOperations, type LegacySearchOperations } from './legacy-search.ts'
import {
  createPolicyOperations,
  createPolicyPaths,
  createUndocumentedPolicyOperations,
  type PolicyOperations,
  type PolicyPathsOptions,
  type UndocumentedPolicyOperations,
} from './policies.ts'
import { createReportOperations, type ReportOperations } from './reports.ts'
import { createTenantOperations, type TenantOperations } from './tenants.ts'
import { createTriageOperations, type TriageOperations } from './triage.ts'

export interface Operations
  extends
    EventOperations,
    CredentialOperations,
    LegacySearchOperations,
    AssetOperations,
    IdentifierOperations,
    PolicyOperations,
    UndocumentedPolicyOperations,
    ReportOperations,
    TenantOperations,
    TriageOperations {}

export function createOperations(options: PolicyPathsOptions): Operations {
  const { parts, capabilities } = options
  const paths = createPolicyPaths(options)
  return {
    ...createEventOperations({ ...parts, capabilities }),
    ...createCredentialOperations(parts),
    ...createLegacySearchOperations(parts),
    ...createAssetOperations({ ...parts, capabilities }),
    ...createIdentifierOperations(parts),
    ...createPolicyOperations(parts, paths),
    ...createUndocumentedPolicyOperations(parts, paths),
    ...createReportOperations(parts),
    ...createTenantOperations(parts),
    ...createTriageOperations(parts),
  }
}

/** Audits for one command: what a repair takes in is planned as the daemon would plan it. */
import { groupingSinks } from '../../delivery/grouping-sinks.ts'
import { buildSecrets } from '../../delivery/leaked-secrets.ts'
import { createRouter } from '../../routing/router.ts'
import { type AuditParts, buildAuditParts } from '../audits.ts'
import type { EngineContext } from '../context.ts'
import type { Upstream } from '../upstream.ts'

export type { AuditParts } from '../audits.ts'

export function openAudits(context: EngineContext, upstream: Upstream): AuditParts {
  const { route, sinks } = context.config
  return buildAuditParts(context, upstream, {
    router: createRouter(route),
    grouping: { sinks: groupingSinks(sinks) },
    secrets: buildSecrets(context),
  })
}

import type { Others, Step } from './plan-step.ts'

/** A step without the values of what it writes. */
export function stepJson(step: Step): Record<string, unknown> {
  switch (step.do) {
    case 'create asset':
      return { do: step.do, asset: step.asset.key, type: step.asset.body.type }
    case 'replace asset':
      return { do: step.do, asset: step.asset.key, id: step.id, fields: step.fields }
    case 'enable asset':
    case 'disable asset':
      return { do: step.do, asset: step.key, id: step.id ?? null, why: step.why }
    case 'create policy':
      return {
        do: step.do,
        policy: step.policy.key,
        type: step.policy.body.type,
        why: step.why,
        instead: step.instead ?? null,
      }
    case 'update policy':
      return {
        do: step.do,
        policy: step.policy.key,
        uuid: step.uuid,
        why: step.why,
        others: idsOf(step.others),
      }
    case 'assign to others':
      return { do: step.do, policy: step.key, identifiers: step.ids }
    case 'assign policy':
      return { do: step.do, policy: step.key, assets: step.assets, drifted: step.drifted }
    case 'unassign policy':
      return {
        do: step.do,
        policy: step.key,
        uuid: step.uuid,
        assets: step.assets,
        drifted: step.drifted,
      }
    case 'delete policy':
      return {
        do: step.do,
        policy: step.key,
        uuid: step.uuid,
        why: step.why,
        losers: idsOf(step.losers),
      }
  }
}

/** null: the server does not tell. */
function idsOf(others: Others): readonly number[] | null {
  return others === 'unknown' ? null : others
}

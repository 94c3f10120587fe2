import type { Finding } from '../../runtime/config-section.ts'
import type { Step } from './plan-step.ts'
import { assetIn, type MonitoringState } from './state-file.ts'
import type { Wanted } from './wanted.ts'

/** What the file asks for and the API has no operation for; found before anything is sent. */
export function impossibleChanges(
  wanted: Wanted,
  state: MonitoringState,
  steps: readonly Step[],
): Finding[] {
  return [...groupChanges(wanted, state), ...creationOnlyWords(steps)]
}

function groupChanges({ assets }: Wanted, state: MonitoringState): Finding[] {
  return assets.flatMap(({ key, written: { assets_group_id: group } }) => {
    const before = assetIn(state, key)?.written
    if (!before || group === undefined || before['assets_group_id'] === group) return []
    const was = before['assets_group_id']
    const problem = 'it was created elsewhere, and the API moves no asset'
    const remedy = typeof was === 'number' ? `write ${was}` : 'remove the line'
    return [{ path: ['assets', key, 'group'], problem, remedy }]
  })
}

/** `ad` and `ads` may be given when an asset is created, not when it is replaced (service.md). */
function creationOnlyWords(steps: readonly Step[]): Finding[] {
  return steps.flatMap((step) => {
    if (step.do !== 'replace asset') return []
    const { key, body } = step.asset
    return body.search_types.flatMap((word, index) =>
      word === 'ad' || word === 'ads'
        ? [
            {
              path: ['assets', key, 'search_types', index],
              problem: `"${word}" may be given when an asset is created, and this one must be replaced (${step.fields.join(', ')})`,
              remedy: 'remove the word, or take the change back',
            },
          ]
        : [],
    )
  })
}

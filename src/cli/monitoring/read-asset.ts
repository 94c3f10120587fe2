import type { WireAsset } from '../../service/wire/assets.ts'
import type { KnownAsset } from './state-file.ts'

/** What of an asset as it came back goes into the state: all but what the file says in clear. */
export function readAsset(
  { data: _data, ...returned }: WireAsset,
  otherwise: boolean | null,
): Pick<KnownAsset, 'returned' | 'disabled'> {
  return { returned, disabled: returned.is_disabled ?? otherwise }
}

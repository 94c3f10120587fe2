import { z } from 'zod'
import type { SandboxSettings } from '../options.ts'
import { sandboxAsset, standingAssets, type SandboxAsset } from './sandbox-asset.ts'

/** What a client may write of an asset. */
export type AssetWriting = Pick<
  SandboxAsset,
  | 'name'
  | 'type'
  | 'searchTypes'
  | 'experimentalSearchTypes'
  | 'risks'
  | 'data'
  | 'attributes'
  | 'isDisabled'
  | 'others'
>

/** Every asset of the sandbox, of whatever tenant. */
export interface AssetStore {
  /** In order of creation, those that stood there from the start first. */
  all(): readonly SandboxAsset[]
  get(id: number): SandboxAsset | undefined
  /** The id that the next creation gives. */
  nextId(): number
  create(place: Pick<SandboxAsset, 'tenantId' | 'groupId'>, writing: AssetWriting): SandboxAsset
  /** Throws where there is no such asset. */
  change(id: number, writing: Partial<AssetWriting>): SandboxAsset
  snapshot(): unknown
  /** Instead of what is there. Throws ZodError on what no snapshot is. */
  restore(snapshot: unknown): void
}

/** One in three ids is beyond 32 bits, as the service's own may be (facts.md 2.6). */
const beyond = 406_285_300_000

export function createAssetStore(
  { groups, now }: Pick<SandboxSettings, 'groups' | 'now'>,
  changed: () => void,
): AssetStore {
  const standing = groups.flatMap((group) => standingAssets(group, now()))
  let assets = new Map(standing.map((asset) => [asset.id, asset]))
  if (assets.size < standing.length) throw new Error('an identifier stands in two groups')
  let made = 0

  function nextId(): number {
    for (let number = made + 1; ; number++) {
      const id = number % 3 === 0 ? beyond + number : 5000 + number
      if (!assets.has(id)) return id
    }
  }

  function keep(asset: SandboxAsset): SandboxAsset {
    assets.set(asset.id, asset)
    changed()
    return asset
  }

  return {
    all: () => [...assets.values()],
    get: (id) => assets.get(id),
    nextId,
    create(place, writing) {
      const id = nextId()
      made++
      return keep({ id, ...place, ...writing, source: 'USER', dataUpdatedAtMs: now() })
    },
    change(id, writing) {
      const asset = assets.get(id)
      if (!asset) throw new Error(`the sandbox has no asset ${id}`)
      const dataUpdatedAtMs = 'data' in writing ? now() : asset.dataUpdatedAtMs
      return keep({ ...asset, ...writing, dataUpdatedAtMs })
    },
    snapshot: () => ({ made, assets: [...assets.values()] }),
    restore(snapshot) {
      const restored = assetSnapshot.parse(snapshot)
      made = restored.made
      assets = new Map(restored.assets.map((asset) => [asset.id, asset]))
      changed()
    },
  }
}

const assetSnapshot = z.object({ made: z.int(), assets: z.array(sandboxAsset) })

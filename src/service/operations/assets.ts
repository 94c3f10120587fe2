/** Assets (identifiers): created, replaced, switched on and off; and how their groups are alerted on. */
import { wireAlertsAnswer, type WireAlert } from '../wire/alerts.ts'
import {
  assetCreation,
  assetReplacement,
  wireAssetAnswer,
  type AssetCreation,
  type AssetReplacement,
  type WireAsset,
} from '../wire/assets.ts'
import { checkRequest } from './check-request.ts'
import {
  pathPart,
  read,
  readWritten,
  write,
  type Asked,
  type OperationParts,
  type Request,
} from './operation.ts'
import { secretTexts } from './secret-texts.ts'

/** All of the basic tier. */
export interface AssetOperations {
  /** `POST /firework/v2/assets/`. */
  createAsset(request: { asset: AssetCreation } & Asked): Promise<WireAsset>
  /** Puts `asset` in the place of what was there, whole. `PUT /firework/v2/assets/{id}`. */
  replaceAsset(request: { id: number; asset: AssetReplacement } & Asked): Promise<WireAsset>
  /** `POST /firework/v2/assets/{id}/toggle`. */
  toggleAsset(request: { id: number; isDisabled: boolean } & Asked): Promise<WireAsset>
  /** How a group of assets is alerted on. `GET /firework/v2/assets/groups/{id}/alerts`. */
  groupAlerts(request: { groupId: number } & Asked): Promise<WireAlert[]>
}

export function createAssetOperations(parts: OperationParts): AssetOperations {
  async function change(request: Request, asked: Asked): Promise<WireAsset> {
    return readWritten(await write(parts, request, asked), wireAssetAnswer).asset
  }

  return {
    async createAsset({ asset, ...asked }) {
      const body = checkRequest(assetCreation, asset)
      const secrets = secretTexts(body.data)
      return change({ method: 'POST', path: '/firework/v2/assets/', body, secrets }, asked)
    },
    async replaceAsset({ id, asset, ...asked }) {
      const body = checkRequest(assetReplacement, asset)
      const path = `/firework/v2/assets/${pathPart(id)}`
      return change({ method: 'PUT', path, body, secrets: secretTexts(body.data) }, asked)
    },
    toggleAsset({ id, isDisabled, ...asked }) {
      const path = `/firework/v2/assets/${pathPart(id)}/toggle`
      return change({ method: 'POST', path, body: { is_disabled: isDisabled } }, asked)
    },
    async groupAlerts({ groupId, ...asked }) {
      const path = `/firework/v2/assets/groups/${pathPart(groupId)}/alerts`
      return (await read(parts, wireAlertsAnswer, { method: 'GET', path }, asked)).alerts ?? []
    },
  }
}

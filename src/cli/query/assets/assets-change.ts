/** `assets replace`, `enable` and `disable`. The service replaces an asset whole: no change of one field is guessed. */
import { checkRequest } from '../../../service/operations/check-request.ts'
import { assetReplacement } from '../../../service/wire/assets.ts'
import { CommandError } from '../../command-error.ts'
import type { Context } from '../../context.ts'
import { assetListing, holdsMask } from './asset-listing.ts'
import { changeEach } from '../change-each.ts'
import { placeOf, readJsonObject, type JsonObject } from '../json-input.ts'
import { nameFailure } from '../name-failure.ts'
import { printOne } from '../print-one.ts'
import type { RevealOption } from '../reveal.ts'
import { withClient, type ServiceOptions } from '../service-command.ts'

export interface AssetOptions extends ServiceOptions, RevealOption {}

export interface ReplaceOptions extends AssetOptions {
  file: string
}

export async function replaceAsset(
  context: Context,
  id: number,
  options: ReplaceOptions,
): Promise<void> {
  const written = await readJsonObject(context, options.file)
  refuseAnother(id, written, placeOf(options.file))
  const asset = checkRequest(assetReplacement, written)
  const replaced = await withClient(context, options, ({ client, asked }) =>
    nameFailure(`asset ${id}`, client.replaceAsset({ id, asset, ...asked() })),
  )
  printOne(context, options, assetListing(options.reveal === true), replaced)
}

function refuseAnother(id: number, written: JsonObject, place: string): void {
  const own = written['id']
  if (own !== undefined && own !== id) {
    throw new CommandError('mistake', `${place}: holds another asset than ${id}; see its "id"`)
  }
  if (holdsMask(written)) {
    const remedy = 'write the secret itself, as --reveal shows it'
    throw new CommandError('mistake', `${place}: holds a masked secret; ${remedy}`)
  }
}

export async function toggleAssets(
  context: Context,
  ids: readonly number[],
  options: AssetOptions & { isDisabled: boolean },
): Promise<void> {
  const { isDisabled } = options
  await withClient(context, options, ({ client, asked }) =>
    changeEach(context, options, ids, {
      listing: assetListing(options.reveal === true),
      done: isDisabled ? 'disabled' : 'enabled',
      change: (id) =>
        nameFailure(`asset ${id}`, client.toggleAsset({ id, isDisabled, ...asked() })),
    }),
  )
}

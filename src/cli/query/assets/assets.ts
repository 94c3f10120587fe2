import { Command } from 'commander'
import type { Context } from '../../context.ts'
import { assetsApplyCommand } from '../../monitoring/assets-apply.ts'
import { createAsset, type CreateAssetOptions } from './assets-create.ts'
import { replaceAsset, toggleAssets, type ReplaceOptions } from './assets-change.ts'
import { anotherId, idList, wholeId } from '../id-values.ts'
import { listValue } from '../option-values.ts'
import { addRevealOption } from '../reveal.ts'
import { addServiceOptions } from '../service-command.ts'

export function assetsCommand(context: Context): Command {
  return new Command('assets')
    .addCommand(createCommand(context))
    .addCommand(replaceCommand(context))
    .addCommand(toggleCommand(context, 'enable'))
    .addCommand(toggleCommand(context, 'disable'))
    .addCommand(assetsApplyCommand(context))
}

function createCommand(context: Context): Command {
  return addAssetOptions(new Command('create'))
    .description(
      'begin to watch something, e.g. create example.com --type domain --search-types all',
    )
    .argument(
      '[value]',
      'what is watched, of a type whose data is one field; a secret is asked for',
    )
    .requiredOption('--type <type>', 'domain, keyword, email, ip and so on')
    .requiredOption(
      '--search-types <types>',
      'where to look, such as leak,paste; or all',
      listValue,
    )
    .option('--name <text>', 'what it is called (default: the value)')
    .option('--data <key=value>', 'one field of its data; once for each', another)
    .option('--data-file <file>', 'its data as a JSON object; - for standard input')
    .option('--risks <numbers>', 'only these severities, 1 (info) to 5 (critical)', idList)
    .option('--experimental-search-types <types>', 'further places to look', listValue)
    .option('--group <id>', 'the assets group that it shall be in', wholeId)
    .action((value: string | undefined, options: CreateAssetOptions) =>
      createAsset(context, value, options),
    )
}

function replaceCommand(context: Context): Command {
  return addAssetOptions(new Command('replace'))
    .description('put a whole asset in the place of another; what the file leaves out is gone')
    .argument('<id>', 'id of the asset', wholeId)
    .requiredOption(
      '--file <file>',
      'the asset in JSON, name, type, search_types and data at least; - for standard input',
    )
    .action((id: number, options: ReplaceOptions) => replaceAsset(context, id, options))
}

function toggleCommand(context: Context, verb: 'enable' | 'disable'): Command {
  return addAssetOptions(new Command(verb))
    .description(verb === 'enable' ? 'watch assets again' : 'watch assets no longer')
    .argument('<ids...>', 'ids of assets', anotherId)
    .action((ids: number[], options: ReplaceOptions) =>
      toggleAssets(context, ids, { ...options, isDisabled: verb === 'disable' }),
    )
}

function addAssetOptions(command: Command): Command {
  return addServiceOptions(addRevealOption(command, 'show secrets as they are'))
}

function another(text: string, before: readonly string[] = []): string[] {
  return [...before, text]
}

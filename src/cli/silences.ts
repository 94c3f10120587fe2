import { Command } from 'commander'
import { addCommonOptions, type CommonOptions, type Context } from './context.ts'
import { addByOption } from './operator.ts'
import { shortText } from './short-text.ts'
import { addSilence, type AddOptions } from './silences-add.ts'
import { expireSilence, listSilences } from './silences-list.ts'

export function silencesCommand(context: Context): Command {
  const list = addCommonOptions(new Command('list'))
    .description('silences of the file and those made by command: active, not begun, over')
    .action((options: CommonOptions) => listSilences(context, options))
  const expire = addCommonOptions(new Command('expire'))
    .description('end a silence that was made by command')
    .argument('<id>', 'as list shows it')
    .action((id: string, options: CommonOptions) => expireSilence(context, id, options))
  return new Command('silences').addCommand(list).addCommand(addCommand(context)).addCommand(expire)
}

function addCommand(context: Context): Command {
  return addByOption(addCommonOptions(new Command('add')))
    .description('send nothing of what matches, from now on for a while')
    .argument('<matchers...>', `all must match, e.g. 'type="paste"' 'team="brand"'`)
    .option('--for <span>', 'how long, such as 2h; at most 30d')
    .option('--until <time>', 'when it ends, such as 2026-11-21T18:00Z')
    .requiredOption('--reason <text>', 'why', shortText)
    .requiredOption('--severity <ceiling>', 'nothing more severe is silenced, e.g. medium')
    .option(
      '--owner <name>',
      "who answers for it (default: --by, $USER or the system's user)",
      shortText,
    )
    .action((matchers: string[], options: AddOptions) => addSilence(context, matchers, options))
}

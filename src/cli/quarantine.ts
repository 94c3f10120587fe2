import { Command } from 'commander'
import { addCommonOptions, type CommonOptions, type Context } from './context.ts'
import { fromOne } from './from-one.ts'
import { listEntries, type ListOptions } from './quarantine-list.ts'
import { replayEntries, type ReplayOptions } from './quarantine-replay.ts'
import { showEntry } from './quarantine-show.ts'

export function quarantineCommand(context: Context): Command {
  const list = addCommonOptions(new Command('list'))
    .description('what could not be read as an event, newest first')
    .option('--feed <name>', 'only what this feed showed')
    .option('--account <name>', 'only of this account')
    .option('--limit <n>', 'how many on a page', fromOne, 20)
    .option('--page <n>', 'which page', fromOne, 1)
    .action((options: ListOptions) => listEntries(context, options))
  const show = addCommonOptions(new Command('show'))
    .description('one item: what is wrong with it, what is kept of it, and what to do')
    .argument('<id>', 'as list shows it, or how it begins')
    .action((id: string, options: CommonOptions) => showEntry(context, id, options))
  const replay = addCommonOptions(new Command('replay'))
    .description('forget items, so that they are read anew when their feed shows them again')
    .argument('[ids...]', 'as list shows them, or how they begin')
    .option('--all', 'every one')
    .option('--feed <name>', 'with --all: those that this feed showed')
    .option('--yes', 'do not ask')
    .action((ids: string[], options: ReplayOptions) => replayEntries(context, ids, options))
  return new Command('quarantine').addCommand(list).addCommand(show).addCommand(replay)
}

import { Command } from 'commander'
import { CommandError } from './command-error.ts'
import { addCommonOptions, type CommonOptions, type Context } from './context.ts'
import { changeLetters, type ChangeOptions } from './dead-letters-change.ts'
import { listLetters, showLetter, type ListOptions } from './dead-letters-show.ts'
import { fromOne } from './from-one.ts'

export function deadLettersCommand(context: Context): Command {
  const list = addCommonOptions(new Command('list'))
    .description('what was given up, newest first')
    .option('--sink <name>', 'only those of this sink')
    .option('--limit <n>', 'how many on a page', fromOne, 20)
    .option('--page <n>', 'which page', fromOne, 1)
    .action((options: ListOptions) => listLetters(context, options))
  const show = addCommonOptions(new Command('show'))
    .description('one dead letter: its story and what it would have said')
    .argument('<id>', 'as list shows it')
    .action((id: string, options: CommonOptions) => showLetter(context, id, options))
  const command = new Command('dead-letters')
  command.addCommand(list).addCommand(show)
  command.addCommand(changeCommand(context, 'replay', 'send dead letters again'))
  return command.addCommand(changeCommand(context, 'discard', 'close dead letters unsent'))
}

function changeCommand(context: Context, verb: 'replay' | 'discard', says: string): Command {
  const command = addCommonOptions(new Command(verb))
    .description(says)
    .argument('[ids...]', 'as list shows them')
    .option('--sink <name>', 'with --all: those of this sink')
    .option('--all', 'every one of the sink')
    .option('--reason <word>', 'with --all: only those that failed for it, e.g. unauthorized')
    .action((ids: string[], options: ChangeOptions) => {
      refuseHalfAChoice(ids, options)
      return changeLetters(context, verb, ids, options)
    })
  return verb === 'discard' ? command.option('--yes', 'do not ask') : command
}

function refuseHalfAChoice(ids: string[], { sink, all, reason }: ChangeOptions): void {
  const isAll = sink !== undefined && all === true
  const isMixed = ids.length > 0 && (sink ?? all ?? reason) !== undefined
  if (isMixed || (ids.length === 0 && !isAll)) {
    throw new CommandError(
      'mistake',
      'name dead letters by their ids, or all of a sink by --sink <name> --all',
    )
  }
}

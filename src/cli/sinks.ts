import { Command } from 'commander'
import { addCommonOptions, type CommonOptions, type Context } from './context.ts'
import { listSinks } from './sinks-list.ts'
import { pauseSink, resumeSink, type PauseOptions } from './sinks-pause.ts'
import {
  discardPending,
  movePending,
  type MoveOptions,
  type SettleOptions,
} from './sinks-settle.ts'
import { testSink } from './sinks-test.ts'
import { addByOption } from './operator.ts'
import { shortText } from './short-text.ts'

export function sinksCommand(context: Context): Command {
  const list = addCommonOptions(new Command('list'))
    .description('how each sink does: what waits, what failed, its circuit and its digest')
    .action((options: CommonOptions) => listSinks(context, options))
  const test = addCommonOptions(new Command('test'))
    .description('send one message marked TEST to each destination of a sink; needs no Redis')
    .argument('<sink>', 'name of the sink')
    .action((name: string, options: CommonOptions) => testSink(context, name, options))
  return new Command('sinks')
    .addCommand(list)
    .addCommand(test)
    .addCommand(pauseCommand(context))
    .addCommand(resumeCommand(context))
    .addCommand(moveCommand(context))
    .addCommand(discardCommand(context))
}

function pauseCommand(context: Context): Command {
  return addCommonOptions(new Command('pause'))
    .description('send nothing to a sink until it is resumed; what comes for it is kept')
    .argument('<sink>', 'name of the sink')
    .requiredOption('--reason <text>', 'why; everybody who looks at the sink reads it', shortText)
    .action((name: string, options: PauseOptions) => pauseSink(context, name, options))
}

function resumeCommand(context: Context): Command {
  return addCommonOptions(new Command('resume'))
    .description('send to a paused or disabled sink again, what was kept first')
    .argument('<sink>', 'name of the sink')
    .action((name: string, options: CommonOptions) => resumeSink(context, name, options))
}

function moveCommand(context: Context): Command {
  return addByOption(addCommonOptions(new Command('move')))
    .description('send what waits for a sink to another one, the worst first')
    .argument('<from>', 'name of the sink; it need not be configured any more')
    .requiredOption('--to <sink>', 'name of a configured sink')
    .option('--yes', 'do not ask')
    .action((from: string, options: MoveOptions) => movePending(context, from, options))
}

function discardCommand(context: Context): Command {
  return addByOption(addCommonOptions(new Command('discard')))
    .description('give up what waits for a sink; it counts as dead')
    .argument('<sink>', 'name of the sink; it need not be configured any more')
    .option('--yes', 'do not ask')
    .action((name: string, options: SettleOptions) => discardPending(context, name, options))
}

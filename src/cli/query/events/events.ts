import { Command } from 'commander'
import type { Context } from '../../context.ts'
import { eventsExpandCommand } from './events-expand.ts'
import { eventsGetCommand } from './events-get.ts'
import { eventsLegacySearchCommand } from './events-legacy-search.ts'
import { eventsSearchCommand } from './events-search.ts'

export function eventsCommand(context: Context): Command {
  return new Command('events')
    .addCommand(eventsSearchCommand(context))
    .addCommand(eventsGetCommand(context))
    .addCommand(eventsExpandCommand(context))
    .addCommand(eventsLegacySearchCommand(context))
}

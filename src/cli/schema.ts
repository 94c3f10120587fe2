import { Command } from 'commander'
import { configSchema } from '../config/schema.ts'
import { addCommonOptions, type Context } from './context.ts'

export function schemaCommand(context: Context): Command {
  return addCommonOptions(new Command('schema'))
    .description('print the JSON Schema of the configuration, for editors')
    .action(() => context.terminal.print(JSON.stringify(configSchema(), null, 2)))
}

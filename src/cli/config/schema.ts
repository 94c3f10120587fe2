import { Command } from 'commander'
import { configSchema } from '../../config/schema.ts'
import { addCommonOptions, type Context } from '../context.ts'
import { monitoringSchema } from '../monitoring/monitoring-file.ts'

export function schemaCommand(context: Context): Command {
  return addCommonOptions(new Command('schema'))
    .option('--monitoring', 'print the schema of the monitoring file instead')
    .action(({ monitoring }: { monitoring?: true }) => {
      const schema = monitoring ? monitoringSchema() : configSchema()
      context.terminal.print(JSON.stringify(schema, null, 2))
    })
}

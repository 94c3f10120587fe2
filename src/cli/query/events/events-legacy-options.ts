import { InvalidArgumentError, Option, type Command } from 'commander'
import { isTimeZone } from '../../../runtime/time-zone.ts'
import {
  legacyEventActions,
  legacySortKeys,
  legacyTypes,
  orders,
  type LegacyType,
} from '../../../service/wire/enumerations.ts'
import { listOf, listValue, textValue } from '../option-values.ts'
import { addSpanOptions } from '../span.ts'

export interface LegacyOptions {
  query?: string
  type?: LegacyType[]
  experimentalType?: string[]
  risk?: number[]
  tag?: string[]
  tagsOperator?: string
  action?: (typeof legacyEventActions)[number]
  actions?: string[]
  hasNotes?: true
  hasModifiedRisk?: true
  globalPolicies: boolean
  fields?: string[]
  timeZone?: string
  sortBy: (typeof legacySortKeys)[number]
  order: (typeof orders)[number]
  method: 'get' | 'post'
}

export function addLegacyOptions(command: Command): Command {
  command
    .addOption(new Option('--query <lucene>', "a query in Lucene's syntax").argParser(textValue))
    .addOption(
      new Option(
        '--type <types>',
        'of these types or groups of types, such as leaks,paste',
      ).argParser(listOf(legacyTypes)),
    )
    .addOption(
      new Option('--experimental-type <types>', 'of these experimental types').argParser(listValue),
    )
    .addOption(
      new Option('--risk <scores>', 'of these risks, 1 (info) to 5 (critical): 4,5').argParser(
        riskList,
      ),
    )
    .addOption(new Option('--tag <tags>', 'with these tags').argParser(listValue))
    .addOption(
      new Option('--tags-operator <word>', 'how several tags count, such as AND or OR').argParser(
        textValue,
      ),
    )
  addSpanOptions(command, 'dated')
  return addLaterOptions(command)
}

function addLaterOptions(command: Command): Command {
  return command
    .addOption(new Option('--action <word>', 'what was done about it').choices(legacyEventActions))
    .addOption(new Option('--actions <words>', 'several of these').argParser(listValue))
    .option('--has-notes', 'only what has notes')
    .option('--has-modified-risk', 'only what was given another risk')
    .option('--no-global-policies', 'whatever the policies of all identifiers leave out')
    .addOption(
      new Option('--fields <paths>', 'only these fields, by their dotted paths').argParser(
        listValue,
      ),
    )
    .addOption(
      new Option('--time-zone <name>', 'in which statistics are counted').argParser(zoneValue),
    )
    .addOption(
      new Option('--sort-by <key>', 'by which time').choices(legacySortKeys).default('created'),
    )
    .addOption(new Option('--order <order>', 'of that time').choices(orders).default('desc'))
    .addOption(
      new Option('--method <method>', 'how it is asked').choices(['get', 'post']).default('post'),
    )
}

function riskList(text: string): number[] {
  const risks = listValue(text).map((risk) => (/^[1-5]$/.test(risk) ? Number(risk) : undefined))
  const known = risks.filter((risk) => risk !== undefined)
  if (known.length === risks.length) return known
  throw new InvalidArgumentError(
    'Write numbers from 1 to 5 with a comma between each, such as 4,5.',
  )
}

function zoneValue(text: string): string {
  if (isTimeZone(text)) return text
  throw new InvalidArgumentError('Write a name of the zone database, such as Europe/Zurich.')
}

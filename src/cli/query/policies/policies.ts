import { Command } from 'commander'
import type { Context } from '../../context.ts'
import { anotherUuid, idList, uuid, wholeId } from '../id-values.ts'
import { listValue } from '../option-values.ts'
import {
  assignPolicy,
  deletePolicies,
  type AssignOptions,
  type DeleteOptions,
} from './policies-change.ts'
import { createPolicy, type CreatePolicyOptions } from './policies-create.ts'
import { getPolicy, listPolicies, type ListPoliciesOptions } from './policies-list.ts'
import { addPagingOptions } from '../print-pages.ts'
import { addServiceOptions, type ServiceOptions } from '../service-command.ts'

export function policiesCommand(context: Context): Command {
  const get = addServiceOptions(new Command('get'))
    .description('one policy')
    .argument('<uuid>', 'uuid of the policy', uuid)
    .action((id: string, options: ServiceOptions) => getPolicy(context, id, options))
  const list = addPagingOptions(addServiceOptions(new Command('list')))
    .description('the policies of an identifier; all policies where the server lists them')
    .option('--identifier <id>', 'only those that are assigned to it', wholeId)
    .action((options: ListPoliciesOptions) => listPolicies(context, options))
  return new Command('policies')
    .addCommand(createCommand(context))
    .addCommand(get)
    .addCommand(list)
    .addCommand(assignCommand(context))
    .addCommand(deleteCommand(context))
}

function createCommand(context: Context): Command {
  return addServiceOptions(new Command('create'))
    .description('make a policy; it does nothing until it is assigned')
    .option('--name <text>', 'what it is called')
    .option('--included-keywords <words>', 'events match that hold one of them', listValue)
    .option('--excluded-keywords <words>', 'events match that hold none of them', listValue)
    .option('--query <lucene>', 'events match that this query finds')
    .option('--cookies <names>', 'events match that hold cookies of these names', listValue)
    .option('--match-subdomains', 'with --cookies: also those of subdomains')
    .option('--file <file>', 'the whole policy in JSON instead; - for standard input')
    .action((options: CreatePolicyOptions) => createPolicy(context, options))
}

function assignCommand(context: Context): Command {
  return addServiceOptions(new Command('assign'))
    .description('let a policy decide which events match identifiers')
    .argument('<uuid>', 'uuid of the policy', uuid)
    .requiredOption('--to <ids>', 'ids of identifiers, such as 77,78', idList)
    .option('--clean-past-events', 'also remove events that matched before')
    .option('--yes', 'do not ask')
    .action((id: string, options: AssignOptions) => assignPolicy(context, id, options))
}

function deleteCommand(context: Context): Command {
  return addServiceOptions(new Command('delete'))
    .description('delete policies, with all their assignments')
    .argument('<uuids...>', 'uuids of policies', anotherUuid)
    .option('--yes', 'do not ask')
    .action((uuids: string[], options: DeleteOptions) => deletePolicies(context, uuids, options))
}

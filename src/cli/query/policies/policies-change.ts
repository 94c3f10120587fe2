/** `policies assign` and `delete`. */
import type { WirePolicy } from '../../../service/wire/policies.ts'
import { askFirst } from '../../ask-first.ts'
import type { Context } from '../../context.ts'
import { counted, harmless } from '../../words.ts'
import { changeEach } from '../change-each.ts'
import type { Listing } from '../listing.ts'
import { nameFailure } from '../name-failure.ts'
import { printOne } from '../print-one.ts'
import { withClient, type OpenService, type ServiceOptions } from '../service-command.ts'

export interface AssignOptions extends ServiceOptions {
  to: number[]
  cleanPastEvents?: true
  yes?: true
}

export async function assignPolicy(
  context: Context,
  uuid: string,
  options: AssignOptions,
): Promise<void> {
  const isClean = options.cleanPastEvents === true
  const assignment = { identifier_ids: [...new Set(options.to)], clean_past_events: isClean }
  await withClient(context, options, async ({ client, asked }) => {
    if (isClean && !options.yes)
      await askFirst(context, [cleaning(uuid, assignment.identifier_ids)])
    await nameFailure(
      `policy ${uuid} for ${identifiersInWords(assignment.identifier_ids)}`,
      client.assignPolicy({ uuid, assignment, ...asked() }),
    )
  })
  printOne(context, options, assignedListing, { policy_uuid: uuid, ...assignment })
}

function cleaning(uuid: string, ids: readonly number[]): string {
  const whose = identifiersInWords(ids)
  return `Events that ${whose} matched and policy ${uuid} does not let through will be removed.`
}

function identifiersInWords(ids: readonly number[]): string {
  return `${ids.length === 1 ? 'identifier' : 'identifiers'} ${ids.join(', ')}`
}

/** The service answers an assignment with nothing: what was asked for. */
interface Assigned {
  policy_uuid: string
  identifier_ids: number[]
  clean_past_events: boolean
}

const assignedListing: Listing<Assigned> = {
  columns: [
    { title: 'POLICY', width: 36, text: ({ policy_uuid: uuid }) => uuid },
    { title: 'ASSIGNED TO', width: 40, text: ({ identifier_ids: ids }) => identifiersInWords(ids) },
  ],
  below: ({ clean_past_events: isClean }) => (isClean ? ['past events are cleaned'] : []),
  json: (assigned) => ({ ...assigned }),
  csv: ['policy_uuid', 'identifier_ids', 'clean_past_events'],
}

export interface DeleteOptions extends ServiceOptions {
  yes?: true
}

/** Nothing is deleted before all of them were found. */
export async function deletePolicies(
  context: Context,
  uuids: readonly string[],
  options: DeleteOptions,
): Promise<void> {
  await withClient(context, options, async (service) => {
    const found = await findPolicies(service, uuids)
    if (!options.yes) await askFirst(context, deleting([...found.values()]))
    await changeEach(context, options, uuids, {
      listing: deletedListing,
      done: 'deleted',
      async change(uuid) {
        const { client, asked } = service
        await nameFailure(`policy ${uuid}`, client.deletePolicy({ uuid, ...asked() }))
        return { uuid, name: found.get(uuid)?.name ?? '' }
      },
    })
  })
}

async function findPolicies(
  { client, asked }: OpenService,
  uuids: readonly string[],
): Promise<Map<string, WirePolicy>> {
  const found = new Map<string, WirePolicy>()
  for (const uuid of uuids) {
    const policy = await nameFailure(`policy ${uuid}`, client.getPolicy({ uuid, ...asked() }))
    found.set(uuid, policy)
  }
  return found
}

function deleting(policies: readonly WirePolicy[]): string[] {
  const names = policies.map(({ uuid, name }) => `${uuid} (${harmless(name)})`)
  const many = counted(policies.length, 'matching policy', 'matching policies')
  return [`${many} will be deleted, with all assignments: ${names.join(', ')}.`]
}

interface Deleted {
  uuid: string
  name: string
}

const deletedListing: Listing<Deleted> = {
  columns: [
    { title: 'DELETED', width: 36, text: ({ uuid }) => uuid },
    { title: 'NAME', width: 40, text: ({ name }) => name },
  ],
  json: ({ uuid, name }) => ({ uuid, name, deleted: true }),
  csv: ['uuid', 'name', 'deleted'],
}

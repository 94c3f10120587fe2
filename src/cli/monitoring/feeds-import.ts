/**
 * `feeds import`: turns the alerts of an assets group into feeds to paste into the configuration.
 */
import { Command } from 'commander'
import { isName } from '../../lib/config-fields.ts'
import { assetOperations, type WireAlert } from '../../upstream/resources/assets.ts'
import { eventSeverities } from '../../upstream/resources/enumerations.ts'
import { addServiceOptions, nameFailure, parseId, withClient } from '../api/api-command.ts'
import { type CommonOptions, type Context, print } from '../context.ts'
import { CommandError, sanitize } from '../terminal.ts'

interface ImportOptions extends CommonOptions {
  account?: string
  group: number
}

export function feedsImportCommand(context: Context): Command {
  return addServiceOptions(new Command('import'), ['text', 'json'])
    .description("print a group's alerts at the service as feeds, to paste under feeds:")
    .requiredOption('--group <id>', 'id of the assets group', parseId)
    .action((options: ImportOptions) => importFeeds(context, options))
}

async function importFeeds(context: Context, options: ImportOptions): Promise<void> {
  const { group: groupId } = options
  await withClient(context, options, async ({ client, config, callOptions }) => {
    const thing = `assets group ${groupId}`
    const alerts = await nameFailure(
      thing,
      client.call(assetOperations.groupAlerts, { assets_group_id: groupId }, callOptions()),
    )
    if (alerts.length === 0) {
      throw new CommandError('refused', `${thing}: it has no alert, so there is nothing to import`)
    }
    const account = config.accounts.length > 1 ? client.account.name : undefined
    const known = config.feeds.map(({ name }) => name)
    const feeds = alertsToFeeds(alerts, { groupId, account, feeds: known })
    print(context, options, {
      json: feeds,
      lines: () => [
        `  # The alerts of assets group ${groupId}; its events are read by the same id.`,
        '  # A name that the configuration has got the id of the group; of two groups that are pasted',
        '  # one after the other, import the second one when the first one is there.',
        ...feeds.flatMap(feedLines),
      ],
    })
  })
}

/** A feed made from alerts; without their params, which hold secrets. */

interface ImportedFeed {
  name: string
  type: 'events'
  account?: string
  identifier_group: number
  filters: { severity?: string[]; type?: string[] }
  /** What has no equivalent, or needs a review. */
  remarks: string[]
}

interface ImportTarget {
  groupId: number
  /** undefined: the configuration has only one account. */
  account: string | undefined
  /** Names of the feeds in the configuration. */
  feeds: readonly string[]
}

/**
 * Makes one feed for each distinct filter. Alerts may share a feed, since routes decide who gets
 * what.
 */
export function alertsToFeeds(
  alerts: readonly WireAlert[],
  { groupId, account, feeds }: ImportTarget,
): ImportedFeed[] {
  const byFilters = Map.groupBy(alerts, (alert) => JSON.stringify(toFilters(alert)))
  const taken = new Set(feeds)
  return [...byFilters.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return []
    const base = toFeedName(first, groupId)
    const clash = feeds.includes(base) ? [`the configuration has a feed ${base} already`] : []
    const name = findFreeName(feeds.includes(base) ? appendGroup(base, groupId) : base, taken)
    taken.add(name)
    return [
      {
        name,
        type: 'events',
        ...(account === undefined ? {} : { account }),
        identifier_group: groupId,
        filters: toFilters(first),
        remarks: [...clash, ...[first, ...others].flatMap(alertRemarks)],
      },
    ]
  })
}

/** A severity list selects exactly its severities; an empty or a full list is no filter. */
function toFilters(alert: WireAlert): ImportedFeed['filters'] {
  const risks = alert.risks ?? []
  const severity = eventSeverities.filter((_word, index) => risks.includes(index + 1))
  const type = [...new Set(alert.search_types ?? [])].filter(isPlainWord).toSorted()
  const isFilter = severity.length > 0 && severity.length < eventSeverities.length
  return { ...(isFilter ? { severity } : {}), ...(type.length > 0 ? { type } : {}) }
}

/** Any other character could begin a variable or a comment where the word is pasted. */
function isPlainWord(word: string): boolean {
  return /^[\w-]{1,64}$/.test(word)
}

function alertRemarks(alert: WireAlert): string[] {
  const { id, name, type, frequency, tenant_alert_channel_id: channel } = alert
  const unknownTypes = [
    ...(alert.search_types ?? []).filter((word) => !isPlainWord(word)),
    ...(alert.experimental_search_types ?? []),
  ]
  const unknownRisks = (alert.risks ?? []).filter((risk) => ![1, 2, 3, 4, 5].includes(risk))
  return [
    `alert ${id}, "${sanitize(name ?? '', 80)}": goes to ${sanitize(type ?? 'an unknown channel', 40)}` +
      `${channel === undefined || channel === null ? '' : ` by channel ${channel}`};` +
      ' write a sink and a route, its params may hold secrets and are not copied',
    ...(typeof frequency === 'number'
      ? [`its frequency ${frequency} has no published unit: every stays at its default`]
      : []),
    ...(unknownTypes.length > 0
      ? [`no equivalent: search types ${unknownTypes.map((word) => sanitize(word, 64)).join(', ')}`]
      : []),
    ...(unknownRisks.length > 0
      ? [`no severity is known for risk ${unknownRisks.join(', ')}`]
      : []),
  ]
}

const maxNameLength = 40
/** Space for a number that makes a name unique. */
const suffixLength = 6

function toFeedName({ name }: WireAlert, groupId: number): string {
  const words = (name ?? '')
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^[^a-z]+|-+$/g, '')
    .slice(0, maxNameLength - suffixLength)
  return isName(words) ? words : `group-${groupId}`
}

function appendGroup(base: string, groupId: number): string {
  const end = `-${groupId}`
  return base.endsWith(end) ? base : shorten(base, maxNameLength - suffixLength - end.length) + end
}

function shorten(base: string, letters: number): string {
  return base.slice(0, letters).replace(/-+$/, '')
}

function findFreeName(base: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number += 1) {
    const free = number === 1 ? base : `${base}-${number}`
    if (!taken.has(free)) return free
  }
}

/** Formats a feed as lines under `feeds:`. */
export function feedLines({ name, remarks, ...feed }: ImportedFeed): string[] {
  const { account, filters } = feed
  const listed = Object.entries(filters).map(
    ([key, words]) => `${key}: [${words.map(yamlText).join(', ')}]`,
  )
  return [
    `  ${yamlText(name)}:`,
    ...remarks.map((remark) => `    # ${remark}`),
    '    type: events',
    ...(account === undefined ? [] : [`    account: ${yamlText(account)}`]),
    `    identifier_group: ${feed.identifier_group}`,
    ...(listed.length === 0 ? [] : [`    filters: { ${listed.join(', ')} }`]),
  ]
}

/** Quotes a word that some version of YAML would not read as text. */
function yamlText(word: string): string {
  const isText =
    /^[a-z][a-z0-9_-]*$/i.test(word) && !/^(null|true|false|yes|no|on|off|y|n)$/i.test(word)
  return isText ? word : JSON.stringify(word)
}

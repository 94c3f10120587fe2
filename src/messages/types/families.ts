/** Describers by event type. A type that needs no describer of its own has a row in a table. */
import { ownFeed } from '../../event.ts'
import {
  describeBucket,
  describeCheckedCredential,
  describeCode,
  describeLeak,
  describeLeakedCredential,
  describeLeakedData,
  describeService,
  idAsName,
} from './describe-credentials.ts'
import { describeBot, describeCookie, describeStealerLog } from './describe-infections.ts'
import {
  describeBlogPost,
  describeCard,
  describeCardBase,
  describeChatMessage,
  describeForum,
  describeListing,
  describeLookalike,
  describePaste,
  describeRansomleak,
} from './describe-writings.ts'
import {
  wrapPresent,
  codeFact,
  type Describe,
  type Description,
  firstAndMore,
  joinPresent,
  phrase,
  type Subject,
  textFact,
  timeFact,
} from './description.ts'

interface TypeKind {
  label: string
  /** The label of the name, and the fields that may hold it. */
  name: readonly [label: string, ...paths: string[]]
  /** If no field has a name, the id in the uid serves. */
  isNamedById?: boolean
}

const anyName = ['Name', 'name', 'username', 'domain', 'hostname', 'email', 'ip_address'] as const
const userName = ['User name', 'username', 'actor.name', 'name', 'realname', 'actor'] as const
const fileName = ['File', 'file_name', 'filename', 'path', 'name'] as const

const kinds: Readonly<Record<string, TypeKind>> = {
  account: { label: 'Account', name: [...userName, 'identity_name', 'email'], isNamedById: true },
  actor: { label: 'Actor profile', name: userName, isNamedById: true },
  actor_summary: { label: 'Actor summary', name: userName, isNamedById: true },
  ad: { label: 'Advertisement', name: ['Advertiser', 'advertiser', 'actor.name', 'name'] },
  attachment: { label: 'Attachment', name: fileName },
  'attachment/telegram': { label: 'Chat attachment', name: fileName },
  chat_channel_summary: {
    label: 'Chat channel summary',
    name: ['Channel', 'context.conversation_name', 'conversation_name', 'channel_name', 'name'],
    isNamedById: true,
  },
  driller: { label: 'Open web find', name: anyName },
  driller_google: { label: 'Search engine find', name: anyName },
  driller_profile: { label: 'Developer profile', name: userName, isNamedById: true },
  entity_classification: { label: 'Entity classification', name: ['Entity', 'entity', 'name'] },
  entity_summarization: { label: 'Entity summary', name: ['Entity', 'entity', 'name'] },
  event: { label: 'Event', name: anyName },
  experimental: { label: 'Experimental find', name: ['Name', 'data.app_name', 'name'] },
  forum_category: {
    label: 'Forum category',
    name: ['Category', 'category_name', 'name'],
    isNamedById: true,
  },
  forum_profile: { label: 'Forum profile', name: userName, isNamedById: true },
  forum_thread_summary: { label: 'Forum thread summary', name: ['Topic', 'topic_title', 'name'] },
  host: {
    label: 'Exposed host',
    name: ['Host', 'hostname', 'host', 'ip_address', 'name'],
    isNamedById: true,
  },
  intelligence_object: { label: 'Intelligence object', name: anyName },
  score_event: { label: 'Score change', name: anyName },
  sdo_attack_pattern: { label: 'Attack pattern', name: anyName },
  sdo_campaign: { label: 'Campaign', name: anyName },
  sdo_external_report: { label: 'External report', name: anyName },
  sdo_identity: { label: 'Identity', name: anyName },
  sdo_indicator: { label: 'Indicator', name: ['Indicator', 'name', 'pattern', 'value'] },
  sdo_infrastructure: { label: 'Infrastructure', name: anyName },
  sdo_location: { label: 'Location', name: anyName },
  sdo_malware: { label: 'Malware', name: anyName },
  sdo_relationship: { label: 'Relationship', name: ['Kind', 'relationship_type', 'name'] },
  sdo_threat_actor: { label: 'Threat actor', name: anyName },
  sdo_threat_actor_group: { label: 'Threat actor group', name: anyName },
  sdo_tool: { label: 'Tool', name: anyName },
  sdo_vulnerability: { label: 'Vulnerability', name: anyName },
  seller: {
    label: 'Market seller',
    name: ['Seller', 'actor_name', 'actor.name', 'actor', 'username', 'name'],
    isNamedById: true,
  },
  threat_flow_summary: { label: 'Threat summary', name: ['Subject', 'subject', 'name'] },
}

const anythingTypes: readonly string[] = Object.keys(kinds)

/** Describes the types of the table, and every unknown type under the type's name. */
function describeAnything(subject: Subject): Description {
  const { event, fields, id } = subject
  const kind = Object.hasOwn(kinds, event.type) ? kinds[event.type] : undefined
  const { label, name, isNamedById } = kind ?? { label: formatType(event.type), name: anyName }
  const [nameLabel, ...paths] = name
  const named =
    fields.text(...paths) ??
    firstAndMore(fields.matched(...paths)) ??
    (isNamedById ? idAsName(id) : null)
  const title = fields.text('title_en', 'title')
  const author = fields.text('actor.name', 'actor.id', 'actor', 'author')
  return {
    typeLabel: label,
    headline: named,
    quote: title,
    tail: phrase({ by: author === named ? null : author, on: event.source }),
    facts: [
      codeFact(nameLabel, named),
      textFact('Title', title),
      textFact('Source', event.source),
      textFact('Author', author === named ? null : author),
      timeFact('Posted', fields.time('posted_at', 'registered_at', 'last_pushed_at', 'created_at')),
      codeFact('Page', fields.text('url', 'browser_url')),
    ],
    content: fields.text('content', 'summary', 'description', 'about'),
  }
}

/** An account on a social network that uses our name. */
function describeSocialMediaAccount({ event, fields, id }: Subject): Description {
  const site = fields.text('site') ?? event.source
  const username = fields.text('username') ?? idAsName(id)
  return {
    typeLabel: 'Social media account',
    headline: username,
    tail: wrapPresent('on ', site),
    facts: [
      codeFact('User name', username),
      textFact('Site', site),
      codeFact('Page', fields.text('url')),
    ],
  }
}

/** Data about a domain: its certificate, its address, its registration. */
function describeDomainData(
  typeLabel: string,
  [valueLabel, ...paths]: readonly [label: string, ...paths: string[]],
): Describe {
  return ({ event, fields, id }) => {
    const domain =
      fields.text('domain', 'fqdn', 'hostname', 'name') ??
      fields.matched('domains')[0] ??
      idAsName(id?.split('/')[0] ?? null)
    const value = firstAndMore(fields.list(...paths)) ?? fields.text(...paths)
    return {
      typeLabel,
      headline: domain,
      tail: joinPresent([wrapPresent(', ', value), wrapPresent('found by ', event.source)], ' '),
      facts: [
        codeFact('Domain', domain),
        codeFact(valueLabel, value),
        textFact('Found by', event.source),
        timeFact('Registered', fields.time('registered_at', 'creation_date', 'created_at')),
        textFact('Issuer', fields.text('issuer')),
        codeFact('Page', fields.text('url')),
      ],
    }
  }
}

/** `source_code_files` → "Source code files". */
function formatType(type: string): string {
  const words = type.replaceAll(/[_\s]+/gu, ' ').trim()
  return words === '' ? 'Event' : words.charAt(0).toUpperCase() + words.slice(1)
}

/** A self-alert: trouble that began, or that is over. */
function describeNotice(subject: Subject): Description {
  if (!isOwnEvent(subject)) return describeForeign(subject)
  const { fields } = subject
  const toDo = fields.text('what_to_do')
  const isCommand = toDo?.startsWith('tocsin ') === true
  return {
    typeLabel: 'Tocsin',
    headline: fields.text('headline') ?? 'trouble of its own',
    facts: [
      timeFact('Since', fields.time('since')),
      timeFact('Over', fields.time('over_at')),
      textFact('Cause', fields.text('cause')),
      isCommand ? codeFact('What to do', toDo) : textFact('What to do', toDo),
    ],
    isOwnWords: true,
  }
}

/** The test event that goes the whole way. */
function describeCanary(subject: Subject): Description {
  if (!isOwnEvent(subject)) return describeForeign(subject)
  const { fields } = subject
  return {
    typeLabel: 'Canary',
    headline: fields.text('headline') ?? 'test event',
    facts: [timeFact('Slot', fields.time('slot'))],
    isOwnWords: true,
  }
}

/** Quotes nothing in the headline: the words of a foreign event could be made to read as ours. */
function describeForeign(subject: Subject): Description {
  return { ...describeAnything(subject), headline: null, quote: '' }
}

/** Checks the feed, because upstream types and sources may have the same names. */
function isOwnEvent({ feed }: Subject): boolean {
  return feed === ownFeed
}

/** Describers by type; other types have a row in `kinds` or are described under their own name. */
const describers = new Map<string, Describe>([
  ['stealer_log', describeStealerLog],
  ['bot', describeBot],
  ['cookie', describeCookie],
  ['leaked_credential', describeLeakedCredential],
  ['credential', describeLeakedCredential],
  ['leak', describeLeak],
  ['leaked_data', describeLeakedData('Leaked data')],
  ['leaked_file', describeLeakedData('Leaked file')],
  ['ransomleak_file_listing', describeLeakedData('Files of a ransom leak')],
  ['valid_credential', describeCheckedCredential('Valid credential')],
  ['invalid_credential', describeCheckedCredential('Invalid credential')],
  ['mitigated_credential', describeCheckedCredential('Mitigated credential')],
  ['ransomleak', describeRansomleak],
  ['document', describeRansomleak],
  ['lookalike', describeLookalike],
  ['domain', describeLookalike],
  [
    'domain_certificate',
    describeDomainData('Domain certificate', ['Subject', 'subject', 'common_name']),
  ],
  ['domain_favicon', describeDomainData('Domain favicon', ['Favicon', 'favicon_url', 'url'])],
  ['domain_dns_records', describeDomainData('Domain DNS records', ['Records', 'records', 'value'])],
  [
    'domain_ip_address',
    describeDomainData('Domain IP address', ['IP address', 'ip_address', 'ip']),
  ],
  ['domain_screenshot', describeDomainData('Domain screenshot', ['Page title', 'title'])],
  ['domain_title', describeDomainData('Domain title', ['Page title', 'title'])],
  ['domain_whois_rdap', describeDomainData('Domain registration', ['Registrar', 'registrar'])],
  ['whois', describeDomainData('Domain registration', ['Registrar', 'registrar'])],
  ['service', describeService],
  ['bucket', describeBucket('Open bucket')],
  ['bucket_object', describeBucket('File in an open bucket')],
  ['docker_image', describeCode('Docker image')],
  ['docker_repository', describeCode('Docker repository')],
  ['driller_source_code', describeCode('Source code')],
  ['source_code_secret', describeCode('Secret in source code')],
  ['listing', describeListing],
  ['cc', describeCard],
  ['cc_bases', describeCardBase],
  ['chat_message', describeChatMessage],
  ['forum_post', describeForum('Forum post')],
  ['forum_topic', describeForum('Forum topic')],
  ['driller_forum_post', describeForum('Forum post')],
  ['driller_forum_topic', describeForum('Forum topic')],
  ['blog_post', describeBlogPost],
  ['paste', describePaste],
  ['social_media_account', describeSocialMediaAccount],
  ['notice', describeNotice],
  ['canary', describeCanary],
])

/** Types with a describer or a row in the table. */
export const describedTypes: readonly string[] = [...describers.keys(), ...anythingTypes]

export function findDescriber(type: string): Describe {
  return describers.get(type) ?? describeAnything
}

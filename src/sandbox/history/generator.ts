/** Generates events: many types, many languages, a few types that nobody has seen before. */
import { createRandom, type SandboxGroup } from '../options.ts'
import {
  makeActor,
  type Draft,
  type DraftContext,
  type Family,
  pasteFooter,
  toHighlight,
  toHost,
  markTerm,
  makePassword,
  writePost,
  formatZonelessTime,
} from './draft.ts'
import type { SandboxEvent } from './history.ts'

/**
 * Families by type; the weight is the number per hundred events. `arrivesAs`: what comes in its place
 * unless the type is asked for; leaks come as single leaked credentials since March 2026.
 */
const families: Record<string, { weight: number; family: Family; arrivesAs?: Family }> = {
  stealer_log: { weight: 14, family: stealerLog },
  leaked_credential: { weight: 16, family: leakedCredential },
  chat_message: { weight: 14, family: chatMessage },
  forum_post: { weight: 10, family: forumPost },
  listing: { weight: 7, family: listing },
  ransomleak: { weight: 3, family: ransomLeak },
  lookalike: { weight: 7, family: lookalike },
  service: { weight: 6, family: service },
  paste: { weight: 6, family: paste },
  blog_post: { weight: 3, family: blogPost },
  bucket: { weight: 2, family: bucket },
  bucket_object: { weight: 3, family: bucketObject },
  leak: { weight: 2, family: leak, arrivesAs: leakedCredential },
  cc: { weight: 2, family: creditCard },
  bot: { weight: 2, family: bot },
  docker_repository: { weight: 1, family: dockerRepository },
  social_media_account: { weight: 1, family: socialMediaAccount },
  unheard_of: { weight: 1, family: unknownType },
}

const weightedFamilies = Object.values(families).flatMap(({ weight, family, arrivesAs = family }) =>
  Array.from({ length: weight }, () => arrivesAs),
)

const rareSeverities = ['urgent', 'none']
const tags = ['triage', 'vip', 'к проверке', 'false positive?']

export interface Generator {
  /** Makes an event for `group`; `given` overrides what is generated to fit its type. */
  make(group: SandboxGroup, nowMs: number, given?: Partial<SandboxEvent>): SandboxEvent
  /**
   * A random age up to `max` ms, and a random group, from the same random sequence as the events.
   */
  randomAgeMs(max: number): number
  pickGroup(groups: readonly SandboxGroup[]): SandboxGroup
  state: () => GeneratorState
}

/**
 * State of a generator. A generator that continues from it makes the same events as this one would.
 */
export interface GeneratorState {
  number: number
  seed: number
}

export function createGenerator(seed: number, from?: GeneratorState): Generator {
  const random = createRandom(from?.seed ?? seed)
  let number = from?.number ?? 0

  function make(
    group: SandboxGroup,
    nowMs: number,
    given: Partial<SandboxEvent> = {},
  ): SandboxEvent {
    number++
    const identifier = random.pick(group.identifiers)
    const createdAtMs = given.createdAtMs ?? nowMs
    const arrivedAtMs = given.arrivedAtMs ?? nowMs
    const family = families[given.type ?? '']?.family ?? random.pick(weightedFamilies)
    const draft = family({
      random,
      number,
      subject: identifier.term ?? identifier.name,
      createdAtMs,
    })
    const isGivenType = given.type === undefined || given.type === draft.type
    const severity = random.chance(0.005) ? random.pick(rareSeverities) : undefined
    const override = random.chance(0.03) ? random.pick(['info', 'critical']) : null
    return {
      uid: draft.uid,
      type: draft.type,
      severity: severity ?? random.pick(draft.severities),
      override: given.severity === undefined ? override : null,
      createdAtMs,
      arrivedAtMs,
      matchedAtMs: random.chance(0.1) ? null : arrivedAtMs,
      groupIds: [group.id],
      identifiers: [{ id: identifier.id, name: identifier.name }],
      tags: random.chance(0.1) ? [random.pick(tags)] : [],
      notes: null,
      ignoredAtMs: null,
      remediatedAtMs: null,
      highlights: draft.highlights,
      data: isGivenType ? draft.data : null,
      ...given,
    }
  }

  return {
    make,
    randomAgeMs: (max) => random.int(0, max),
    pickGroup: (groups) => random.pick(groups),
    state: () => ({ number, seed: random.seed() }),
  }
}

/**
 * The model is named `lookalike`; its uid and its filter say `domain` (docs/api-notes.md, Events).
 */
function lookalike({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const host = toHost(subject)
  const domain = `${host.replace('e', '3').replaceAll('.', '-')}-${number}.top`
  return {
    type: 'lookalike',
    uid: `domain/flare/${domain}`,
    severities: ['medium', 'low', 'high'],
    data: {
      domain,
      registered_at: random.chance(0.3) ? null : formatZonelessTime(createdAtMs - 86_400_000),
      identifier_domains: [host],
      feed: 'certstream',
      cert_data: {},
      subject: `CN=${domain}`,
      issuer: "C=US, O=Let's Encrypt, CN=R11",
    },
    highlights: { domain: [markTerm(domain)] },
  }
}

function service({ random, number, subject }: DraftContext): Draft {
  const port = random.pick([21, 22, 443, 3389, 8080])
  const address = `198.51.100.${random.int(1, 254)}`
  return {
    type: 'service',
    uid: `service/driller_shodan/${address}_${port}_${number}`,
    severities: ['low', 'medium', 'info'],
    data: {
      url: null,
      asn: 'AS64500',
      content: 'HTTP/1.1 200 OK\r\nServer: nginx',
      service: 'https',
      product: 'nginx',
      port,
      ip_address: address,
      organization: 'Example Hosting',
      hostname: `vpn.${toHost(subject)}`,
      country_code: 'DE',
      vulnerabilities: random.chance(0.4) ? ['CVE-2023-44487', 'CVE-2021-23017'] : [],
    },
    highlights: { hostname: [markTerm(`vpn.${toHost(subject)}`)] },
  }
}

function bucket({ number, subject }: DraftContext): Draft {
  const host = `${toHost(subject).replaceAll('.', '-')}-backup-${number}.s3.example`
  return {
    type: 'bucket',
    uid: `bucket/grayhat_warfare/${number}`,
    severities: ['medium', 'low'],
    data: { url: `https://${host}/`, bucket: { host, provider: 'aws' } },
    highlights: { 'bucket.host': [markTerm(host)] },
  }
}

function bucketObject({ number, subject }: DraftContext): Draft {
  const host = `${toHost(subject).replaceAll('.', '-')}.s3.example`
  return {
    type: 'bucket_object',
    uid: `bucket_object/grayhat_warfare/${number}`,
    severities: ['low', 'medium', 'info'],
    data: {
      url: `https://${host}/exports/payroll "final" ${number}.xlsx`,
      bucket: { host, provider: 'aws' },
    },
    highlights: { url: [`https://${markTerm(host)}/exports/payroll`] },
  }
}

function dockerRepository({ random, number, subject, createdAtMs }: DraftContext): Draft {
  return {
    type: 'docker_repository',
    uid: `docker_repository/dockerhub/acme${number}`,
    severities: ['info', 'low'],
    data: {
      url: `https://hub.example/r/acme${number}`,
      star_count: 0,
      pull_count: random.int(1, 90_000),
      collaborator_count: null,
      last_updated_at: formatZonelessTime(createdAtMs),
      last_modified_at: null,
      registered_at: formatZonelessTime(createdAtMs - 86_400_000),
    },
    highlights: { description: [markTerm(subject)] },
  }
}

function socialMediaAccount({ number, subject }: DraftContext): Draft {
  const username = `${toHost(subject).split('.')[0]}_support_${number}`
  return {
    type: 'social_media_account',
    uid: `social_media_account/telegram/${username}`,
    severities: ['low', 'medium'],
    data: { url: `https://social.example/${username}`, site: 'telegram', username },
    highlights: { username: [markTerm(username)] },
  }
}

/** A type without a model that no public list names, since new types appear. */
function unknownType({ random, number, subject }: DraftContext): Draft {
  return {
    type: random.pick(['mesh_relay', 'satellite_chat']),
    uid: `experimental/darknet/darkchat/example-${number}`,
    severities: ['medium', 'high'],
    data: null,
    highlights: { body: [markTerm(subject)] },
  }
}

const malware = ['RedLine', 'Lumma', 'Vidar', 'StealC', 'Raccoon']
const places = [
  ['BR', 'São Paulo'],
  ['IN', 'Mumbai'],
  ['DE', 'München'],
  ['TR', 'İzmir'],
  ['US', 'Tulsa'],
] as const

function stealerLog({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const [country, city] = random.pick(places)
  const user = `user${random.int(1, 999)}@${toHost(subject)}`
  return {
    type: 'stealer_log',
    uid: `stealer_log/stealer_logs_live/${10_000 + number}`,
    severities: ['high', 'high', 'critical', 'medium'],
    data: {
      victim_information: {
        ip_address: `203.0.113.${random.int(1, 254)}`,
        username: user.split('@')[0],
        country_code: country,
        zip_code: null,
        location: city,
        hwid: random.hex(32).toUpperCase(),
        current_language: null,
        screensize_width: 1920,
        screensize_height: 1080,
        timezone: 'UTC-03:00',
        os: 'Windows 10 Pro [x64]',
        uac: 'AllowAll',
        process_elevation: random.chance(0.5),
        available_keyboards: ['Portuguese (Brazil)', 'English (United States)'],
        hardware: [`Name: DESKTOP-${random.hex(7).toUpperCase()}`, 'Intel(R) Core(TM) i5-8250U'],
        anti_viruses: ['Windows Defender'],
      },
      malware_information: {
        malware_family: random.pick(malware),
        build_id: random.hex(8),
        file_location: 'C:\\Users\\Public\\Setup.exe',
        infected_at: formatZonelessTime(createdAtMs - random.int(1, 96) * 3_600_000),
      },
    },
    highlights: {
      'credentials.url': [`https://${markTerm(toHost(subject))}/login`],
      'credentials.username': [markTerm(user)],
      'credentials.password': [makePassword(random)],
    },
  }
}

function bot({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const [country, city] = random.pick(places)
  return {
    type: 'bot',
    uid: `bot/russian_market/${500_000 + number}`,
    severities: ['medium', 'high'],
    data: {
      name: `${country}-${random.hex(8).toUpperCase()}`,
      url: null,
      actor: { id: null },
      victim_information: {
        country_code: country,
        location: city,
        isp: 'Vivo S.A.',
        installed_at: formatZonelessTime(createdAtMs - 86_400_000),
        os: 'Windows 11',
      },
      price: random.pick(['10', '25.00', '7.5']),
      currency: 'USD',
    },
    highlights: { resources: [`login.${markTerm(toHost(subject))}`] },
  }
}

function leakedCredential({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const identity = `${random.pick(['anna', 'j.doe', 'søren', 'admin'])}${number}@${toHost(subject)}`
  const password = makePassword(random)
  return {
    type: 'leaked_credential',
    uid: `leaked_credential/combolists/${number.toString(16).padStart(8, '0')}${random.hex(24)}`,
    severities: ['high', 'medium', 'critical'],
    data: {
      identity_name: identity,
      imported_at: formatZonelessTime(createdAtMs),
      password,
      source: { id: 'combolists', name: 'Combolists' },
    },
    highlights: { identity_name: [markTerm(identity)], password: [password] },
  }
}

function leak({ random, number, subject, createdAtMs }: DraftContext): Draft {
  return {
    type: 'leak',
    uid: `leak/leaksdb/${number}`,
    severities: ['high', 'critical'],
    data: {
      term: toHost(subject),
      site_url: 'http://leakbase.example/t/1',
      leaked_at: formatZonelessTime(createdAtMs - 3_600_000),
      breached_at: null,
      leaked_credential_count: random.int(1, 5000),
      pii_tags: ['email', 'password', 'phone_number'],
      source: { id: `breach_${number}`, name: 'Online Shop 2026' },
    },
    highlights: { term: [markTerm(toHost(subject))] },
  }
}

function creditCard({ random, number, createdAtMs }: DraftContext): Draft {
  return {
    type: 'cc',
    uid: `cc/bclub/${number}`,
    severities: ['medium', 'high'],
    data: {
      bank: 'Example Bank',
      bin: String(random.int(400_000, 499_999)),
      brand: 'VISA',
      country: 'CH',
      expiration: formatZonelessTime(createdAtMs + 31_536_000_000),
      owner: null,
      state_code: null,
      zip: '8001',
      has_cvv: true,
      has_date_of_birth: false,
      has_phone: null,
      has_ssn: false,
    },
    highlights: {},
  }
}

function paste({ random, number, subject }: DraftContext): Draft {
  const post = writePost(random, subject)
  const uid = `paste/pastebin/${random.hex(6)}${number}`
  return {
    type: 'paste',
    uid,
    severities: ['low', 'low', 'medium', 'info'],
    data: {
      url: `https://pastebin.example/${random.hex(8)}`,
      title: random.chance(0.3) ? null : 'untitled',
      content: `${post}${pasteFooter(uid, toHost(subject))}`,
      actor: random.chance(0.5) ? null : makeActor(random),
      expires_at: null,
      syntax: 'text',
    },
    highlights: { content: [toHighlight(post, subject)] },
  }
}

function forumPost({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const content = writePost(random, subject)
  const forum = random.pick(['xss', 'exploit', 'breachforums', 'dread'])
  return {
    type: 'forum_post',
    uid: `forum_post/${forum}/${number}`,
    severities: ['medium', 'medium', 'low', 'high'],
    data: {
      actor: makeActor(random),
      context: {
        category_name: 'Access',
        topic_id: String(random.int(1, 99_999)),
        topic_title: subject,
      },
      posted_at: `${formatZonelessTime(createdAtMs + 19_800_000)}+05:30`,
      content,
      url: `http://${forum}.example/posts/${number}`,
    },
    highlights: { content: [toHighlight(content, subject)] },
  }
}

function chatMessage({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const content = writePost(random, subject)
  const conversation = random.int(1_000_000, 1_999_999)
  return {
    type: 'chat_message',
    uid: `chat_message/telegram/${conversation}/${number}`,
    severities: ['low', 'medium', 'medium', 'info'],
    data: {
      posted_at: formatZonelessTime(createdAtMs),
      actor: makeActor(random),
      context: {
        conversation_id: String(conversation),
        conversation_name: 'Daily Logs ☁️ VIP',
      },
      content,
      parent_context: null,
      forward_info: null,
      was_forwarded: random.chance(0.2),
    },
    highlights: { content: [toHighlight(content, subject)] },
  }
}

function blogPost({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const content = writePost(random, subject)
  return {
    type: 'blog_post',
    uid: `blog_post/hidden_wiki_news/${number}`,
    severities: ['low', 'info', 'medium'],
    data: {
      url: `http://news.example/${number}`,
      content,
      description: null,
      posted_at: random.chance(0.5) ? null : formatZonelessTime(createdAtMs),
    },
    highlights: { content: [toHighlight(content, subject)] },
  }
}

function listing({ random, number, subject }: DraftContext): Draft {
  const content = writePost(random, subject)
  return {
    type: 'listing',
    uid: `listing/apollon_market/${number}`,
    severities: ['medium', 'high', 'low'],
    data: {
      url: `http://apollon.example/listing/${number}`,
      title: `${subject} accounts x10`,
      content,
      currency: 'USD',
      escrow: random.chance(0.7),
      price: random.int(5, 5000) / 10,
      ship_to: [],
      ship_from: ['Worldwide'],
      stock_count: null,
      actor: makeActor(random),
      classification: {
        classes: { is_carding: true, is_phishing: null },
        types: { is_data: true, is_service: false },
      },
      context: { category_name: 'Accounts' },
    },
    highlights: { title: [toHighlight(subject, subject)] },
  }
}

/** Its uid says `document`, unlike its type (docs/api-notes.md, Events). */
function ransomLeak({ random, number, subject }: DraftContext): Draft {
  const group = random.pick(['lockbit', 'akira', 'play', 'qilin'])
  return {
    type: 'ransomleak',
    uid: `document/${group}/${number}`,
    severities: ['critical', 'critical', 'high'],
    data: {
      url: `http://${group}.example/post/${number}`,
      response_url: null,
      title: subject,
      content: `${subject} has been encrypted. 5 days left.`,
      body: null,
      victim_information: {
        name: subject.toLowerCase(),
        display_name: subject,
        domain: toHost(subject),
        alternative_domains: null,
        industry: 'finance',
        employee_count: random.int(10, 50_000),
        city: 'Zürich',
        state: null,
        country: 'CH',
        latitude: 47.37,
        longitude: 8.54,
      },
    },
    highlights: { title: [toHighlight(subject, subject)] },
  }
}

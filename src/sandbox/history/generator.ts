/** Generates events: several types, many languages, a few types that nobody has seen before. */
import { createRandom, type Random, type SandboxGroup } from '../options.ts'
import { formatZonelessTime } from '../times.ts'
import type { SandboxEvent } from './history.ts'
import { makeActor, makePassword, markTerm, toHighlight, toHost, writePost } from './texts.ts'

/** The part of a generated event that depends on its type. */
interface Draft {
  /** The uid without its first part, which is the type. */
  id: string
  /** `data` of the full event; null: the type has no model. */
  data: Record<string, unknown> | null
  highlights: Record<string, string[]>
}

interface DraftContext {
  random: Random
  /** Increases with every event and makes uids unique. */
  number: number
  /** The term that matched, and as a host. */
  subject: string
  host: string
  createdAtMs: number
}

interface Kind {
  /** Events in a hundred. */
  weight: number
  /** Severities that such an event may have, likelier ones repeated. */
  severities: readonly string[]
  /** First part of the uid, where it is not the type (docs/api-notes.md, Events). */
  index?: string
  draft: (context: DraftContext) => Draft
}

/** What arrives, by type; any other type may be asked for. */
const kinds: Readonly<Record<string, Kind>> = {
  leaked_credential: {
    weight: 18,
    severities: ['high', 'medium', 'critical'],
    draft: leakedCredential,
  },
  stealer_log: {
    weight: 16,
    severities: ['high', 'high', 'critical', 'medium'],
    draft: stealerLog,
  },
  chat_message: {
    weight: 14,
    severities: ['low', 'medium', 'medium', 'info'],
    draft: chatMessage,
  },
  forum_post: { weight: 12, severities: ['medium', 'medium', 'low', 'high'], draft: forumPost },
  listing: { weight: 8, severities: ['medium', 'high', 'low'], draft: listing },
  lookalike: {
    weight: 8,
    severities: ['medium', 'low', 'high'],
    index: 'domain',
    draft: lookalike,
  },
  service: { weight: 10, severities: ['low', 'medium', 'info'], draft: service },
  paste: { weight: 9, severities: ['low', 'low', 'medium', 'info'], draft: paste },
  ransomleak: {
    weight: 3,
    severities: ['critical', 'critical', 'high'],
    index: 'document',
    draft: ransomLeak,
  },
  mesh_relay: { weight: 2, severities: ['medium', 'high'], index: 'experimental', draft: unknown },
}

const weighted = Object.entries(kinds).flatMap(([type, { weight }]) =>
  Array.from({ length: weight }, () => type),
)
/** Of any type that is asked for, which may be any text. */
const anyKind: Kind = {
  weight: 0,
  severities: ['medium', 'high'],
  index: 'experimental',
  draft: unknown,
}

const rareSeverities = ['urgent', 'none']
const tags = ['triage', 'vip', 'к проверке', 'false positive?']

export interface Generator {
  /** Makes an event for `group`; `given` overrides what is generated to fit its type. */
  make(group: SandboxGroup, nowMs: number, given?: Partial<SandboxEvent>): SandboxEvent
  random: Random
}

export function createGenerator(seed: number): Generator {
  const random = createRandom(seed)
  let number = 0

  return {
    random,
    make(group, nowMs, given = {}) {
      number++
      const { id, name, term = name } = random.pick(group.identifiers)
      const createdAtMs = given.createdAtMs ?? nowMs
      const arrivedAtMs = given.arrivedAtMs ?? nowMs
      const type = given.type ?? random.pick(weighted)
      const kind = kinds[type] ?? anyKind
      const host = toHost(term)
      const draft = kind.draft({ random, number, subject: term, host, createdAtMs })
      const severity = random.chance(0.005) ? random.pick(rareSeverities) : undefined
      const override = random.chance(0.03) ? random.pick(['info', 'critical']) : null
      return {
        uid: `${kind.index ?? type}/${draft.id}`,
        type,
        severity: severity ?? random.pick(kind.severities),
        override: given.severity === undefined ? override : null,
        createdAtMs,
        arrivedAtMs,
        matchedAtMs: random.chance(0.1) ? null : arrivedAtMs,
        groupIds: [group.id],
        identifiers: [{ id, name }],
        tags: random.chance(0.1) ? [random.pick(tags)] : [],
        notes: null,
        ignoredAtMs: null,
        remediatedAtMs: null,
        highlights: draft.highlights,
        data: draft.data,
        ...given,
      }
    },
  }
}

function lookalike({ random, number, host, createdAtMs }: DraftContext): Draft {
  const domain = `${host.replace('e', '3').replaceAll('.', '-')}-${number}.top`
  return {
    id: `flare/${domain}`,
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

function service({ random, number, host }: DraftContext): Draft {
  const address = `198.51.100.${random.int(1, 254)}`
  const port = random.pick([21, 22, 443, 3389, 8080])
  return {
    id: `driller_shodan/${address}_${port}_${number}`,
    data: {
      url: null,
      content: 'HTTP/1.1 200 OK\r\nServer: nginx',
      service: 'https',
      product: 'nginx',
      port,
      ip_address: address,
      organization: 'Example Hosting',
      hostname: `vpn.${host}`,
      country_code: 'DE',
      vulnerabilities: random.chance(0.4) ? ['CVE-2023-44487', 'CVE-2021-23017'] : [],
    },
    highlights: { hostname: [markTerm(`vpn.${host}`)] },
  }
}

/** Of a type without a model, which may be one that no public list names. */
function unknown({ number, subject }: DraftContext): Draft {
  return {
    id: `darknet/example-${number}`,
    data: null,
    highlights: { body: [markTerm(subject)] },
  }
}

const places = [
  ['BR', 'São Paulo'],
  ['IN', 'Mumbai'],
  ['DE', 'München'],
  ['TR', 'İzmir'],
] as const

function stealerLog({ random, number, host, createdAtMs }: DraftContext): Draft {
  const [country, city] = random.pick(places)
  const user = `user${random.int(1, 999)}@${host}`
  return {
    id: `stealer_logs_live/${10_000 + number}`,
    data: {
      victim_information: {
        ip_address: `203.0.113.${random.int(1, 254)}`,
        username: user.split('@')[0],
        country_code: country,
        zip_code: null,
        location: city,
        hwid: random.hex(32).toUpperCase(),
        timezone: 'UTC-03:00',
        os: 'Windows 10 Pro [x64]',
        available_keyboards: ['Portuguese (Brazil)', 'English (United States)'],
        hardware: [`Name: DESKTOP-${random.hex(7).toUpperCase()}`, 'Intel(R) Core(TM) i5-8250U'],
        anti_viruses: ['Windows Defender'],
      },
      malware_information: {
        malware_family: random.pick(['RedLine', 'Lumma', 'Vidar', 'StealC', 'Raccoon']),
        build_id: random.hex(8),
        file_location: 'C:\\Users\\Public\\Setup.exe',
        infected_at: formatZonelessTime(createdAtMs - random.int(1, 96) * 3_600_000),
      },
    },
    highlights: {
      'credentials.url': [`https://${markTerm(host)}/login`],
      'credentials.username': [markTerm(user)],
      'credentials.password': [makePassword(random)],
    },
  }
}

function leakedCredential({ random, number, host, createdAtMs }: DraftContext): Draft {
  const identity = `${random.pick(['anna', 'j.doe', 'søren', 'admin'])}${number}@${host}`
  const password = makePassword(random)
  return {
    id: `combolists/${number.toString(16).padStart(8, '0')}${random.hex(24)}`,
    data: {
      identity_name: identity,
      imported_at: formatZonelessTime(createdAtMs),
      password,
      source: { id: 'combolists', name: 'Combolists' },
    },
    highlights: { identity_name: [markTerm(identity)], password: [password] },
  }
}

function post({ random, subject }: DraftContext): {
  content: string
  highlights: Draft['highlights']
} {
  const content = writePost(random, subject)
  return { content, highlights: { content: [toHighlight(content, subject)] } }
}

function paste(context: DraftContext): Draft {
  const { random, number } = context
  const { content, highlights } = post(context)
  return {
    id: `pastebin/${random.hex(6)}${number}`,
    data: {
      url: `https://pastebin.example/${random.hex(8)}`,
      title: random.chance(0.3) ? null : 'untitled',
      content,
      actor: random.chance(0.5) ? null : makeActor(random),
      syntax: 'text',
    },
    highlights,
  }
}

function forumPost(context: DraftContext): Draft {
  const { random, number, subject, createdAtMs } = context
  const { content, highlights } = post(context)
  const forum = random.pick(['xss', 'exploit', 'breachforums', 'dread'])
  return {
    id: `${forum}/${number}`,
    data: {
      actor: makeActor(random),
      context: { category_name: 'Access', topic_id: `${number}`, topic_title: subject },
      posted_at: `${formatZonelessTime(createdAtMs + 19_800_000)}+05:30`,
      content,
      url: `http://${forum}.example/posts/${number}`,
    },
    highlights,
  }
}

function chatMessage(context: DraftContext): Draft {
  const { random, number, createdAtMs } = context
  const { content, highlights } = post(context)
  const conversation = random.int(1_000_000, 1_999_999)
  return {
    id: `telegram/${conversation}/${number}`,
    data: {
      posted_at: formatZonelessTime(createdAtMs),
      actor: makeActor(random),
      context: { conversation_id: `${conversation}`, conversation_name: 'Daily Logs ☁️ VIP' },
      content,
    },
    highlights,
  }
}

function listing({ random, number, subject }: DraftContext): Draft {
  return {
    id: `apollon_market/${number}`,
    data: {
      url: `http://apollon.example/listing/${number}`,
      title: `${subject} accounts x10`,
      content: writePost(random, subject),
      currency: 'USD',
      price: random.int(5, 5000) / 10,
      ship_from: ['Worldwide'],
      stock_count: null,
      actor: makeActor(random),
      context: { category_name: 'Accounts' },
    },
    highlights: { title: [toHighlight(subject, subject)] },
  }
}

function ransomLeak({ random, number, subject, host }: DraftContext): Draft {
  const group = random.pick(['lockbit', 'akira', 'play', 'qilin'])
  return {
    id: `${group}/${number}`,
    data: {
      url: `http://${group}.example/post/${number}`,
      title: subject,
      content: `${subject} has been encrypted. 5 days left.`,
      victim_information: {
        display_name: subject,
        domain: host,
        industry: 'finance',
        employee_count: random.int(10, 50_000),
        city: 'Zürich',
        country: 'CH',
      },
    },
    highlights: { title: [toHighlight(subject, subject)] },
  }
}

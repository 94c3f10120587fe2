/** Generates events: several types, many languages, a few types that nobody has seen before. */
import { createRandom, type Random, type SandboxGroup } from '../options.ts'
import { formatZonelessTime } from '../times.ts'
import type { SandboxEvent } from './history.ts'
import { makeActor, makePassword, markTerm, toHost, writePost } from './texts.ts'

/** The part of a generated event that depends on its type. */
interface Draft {
  /** The uid without its first part, which is the type. */
  id: string
  /** `data` of the full event; null: the type has no model. */
  data: Record<string, unknown> | null
  /** Default: the texts in `data` that hold the subject. */
  highlights?: Record<string, string[]>
}

interface DraftContext {
  random: Random
  /** Increases with every event and makes uids unique. */
  number: number
  /** The name of what is watched, and as a host. */
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

/** Of a type without a model, which may be one that no public list names. */
const experimental = {
  severities: ['medium', 'high'],
  index: 'experimental',
  draft: ({ number, subject }: DraftContext): Draft => ({
    id: `darknet/example-${number}`,
    data: null,
    highlights: { body: [markTerm(subject)] },
  }),
}

/** What arrives, by type; any other type may be asked for. */
const kinds: Readonly<Record<string, Kind>> = {
  leaked_credential: {
    weight: 20,
    severities: ['high', 'medium', 'critical'],
    draft: leakedCredential,
  },
  stealer_log: {
    weight: 16,
    severities: ['high', 'high', 'critical', 'medium'],
    draft: stealerLog,
  },
  chat_message: {
    weight: 18,
    severities: ['low', 'medium', 'medium', 'info'],
    draft: ({ random, number, subject, createdAtMs }) => ({
      id: `telegram/1234567/${number}`,
      data: {
        posted_at: formatZonelessTime(createdAtMs),
        actor: makeActor(random),
        context: { conversation_id: '1234567', conversation_name: 'Daily Logs ☁️ VIP' },
        content: writePost(random, subject),
      },
    }),
  },
  forum_post: {
    weight: 14,
    severities: ['medium', 'medium', 'low', 'high'],
    draft: ({ random, number, subject, createdAtMs }) => ({
      id: `xss/${number}`,
      data: {
        actor: makeActor(random),
        context: { category_name: 'Access', topic_id: `${number}`, topic_title: subject },
        posted_at: `${formatZonelessTime(createdAtMs + 19_800_000)}+05:30`,
        content: writePost(random, subject),
        url: `http://xss.example/posts/${number}`,
      },
    }),
  },
  lookalike: {
    weight: 8,
    severities: ['medium', 'low', 'high'],
    index: 'domain',
    draft: ({ number, host }) => {
      const domain = `${host.replace('e', '3').replaceAll('.', '-')}-${number}.top`
      const data = { domain, registered_at: null, identifier_domains: [host], feed: 'certstream' }
      return { id: `flare/${domain}`, data, highlights: { domain: [markTerm(domain)] } }
    },
  },
  service: {
    weight: 10,
    severities: ['low', 'medium', 'info'],
    draft: ({ random, number, host }) => ({
      id: `driller_shodan/198.51.100.7_${number}`,
      data: {
        url: null,
        content: 'HTTP/1.1 200 OK\r\nServer: nginx',
        product: 'nginx',
        port: random.pick([21, 22, 443, 3389, 8080]),
        ip_address: `198.51.100.${random.int(1, 254)}`,
        organization: 'Example Hosting',
        hostname: `vpn.${host}`,
        country_code: 'DE',
        vulnerabilities: random.chance(0.4) ? ['CVE-2023-44487', 'CVE-2021-23017'] : [],
      },
    }),
  },
  paste: {
    weight: 9,
    severities: ['low', 'low', 'medium', 'info'],
    draft: ({ random, number, subject }) => ({
      id: `pastebin/${random.hex(6)}${number}`,
      data: {
        url: `https://pastebin.example/${random.hex(8)}`,
        title: random.chance(0.3) ? null : 'untitled',
        content: writePost(random, subject),
        actor: random.chance(0.5) ? null : makeActor(random),
        syntax: 'text',
      },
    }),
  },
  ransomleak: {
    weight: 3,
    severities: ['critical', 'critical', 'high'],
    index: 'document',
    draft: ({ random, number, subject, host }) => ({
      id: `lockbit/${number}`,
      data: {
        url: `http://lockbit.example/post/${number}`,
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
    }),
  },
  mesh_relay: { weight: 2, ...experimental },
}

function stealerLog({ random, number, host, createdAtMs }: DraftContext): Draft {
  const user = `user${random.int(1, 999)}@${host}`
  return {
    id: `stealer_logs_live/${10_000 + number}`,
    data: {
      victim_information: {
        ip_address: `203.0.113.${random.int(1, 254)}`,
        username: user.split('@')[0],
        country_code: 'BR',
        location: 'São Paulo',
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

const weighted = Object.entries(kinds).flatMap(([type, { weight }]) =>
  Array.from({ length: weight }, () => type),
)
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
      const { id, name } = random.pick(group.identifiers)
      const createdAtMs = given.createdAtMs ?? nowMs
      const arrivedAtMs = given.arrivedAtMs ?? nowMs
      const type = given.type ?? random.pick(weighted)
      const kind = kinds[type] ?? { weight: 0, ...experimental }
      const draft = kind.draft({ random, number, subject: name, host: toHost(name), createdAtMs })
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
        highlights: draft.highlights ?? highlightsIn(draft.data ?? {}, name),
        data: draft.data,
        ...given,
      }
    },
  }
}

/** The texts that hold the subject, which is marked in them; nothing is escaped. */
function highlightsIn(data: Record<string, unknown>, subject: string): Record<string, string[]> {
  const term = [subject, toHost(subject)]
  return Object.fromEntries(
    Object.entries(data).flatMap(([field, value]) => {
      const found = typeof value === 'string' && term.find((word) => value.includes(word))
      return found ? [[field, [value.replaceAll(found, markTerm(found))]]] : []
    }),
  )
}

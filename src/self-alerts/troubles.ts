/** The troubles that operators are alerted to, with their texts. */
import { lossRemedy } from '../store/account-ledger.ts'

/**
 * What is in trouble, e.g. feed `brand`; null if there is only one of its kind. Of `many` the name
 * is the kind of which there are many.
 */
export interface TroubleName {
  kind: TroubleKind
  name: string | null
}

interface TroubleTexts {
  severity: 'high' | 'critical'
  /** While it lasts; "for 22 min" follows. */
  now: (name: string) => string
  /** Once it is over. */
  was: (name: string) => string
  /** What an operator does; a command where there is one. */
  toDo: (name: string) => string
}

const troubles = {
  'account-refused': {
    severity: 'critical',
    now: (name) => `the service has refused the key of account ${name}`,
    was: (name) => `the service refused the key of account ${name}`,
    toDo: (name) => `give the account a valid key, then: tocsin token test --account ${name}`,
  },
  'account-left': {
    severity: 'high',
    now: (name) => `account ${name} is not configured any more, and items of it have waited`,
    was: (name) => `account ${name} was not configured any more, and items of it waited`,
    toDo: (name) =>
      `tocsin sinks list says what keeps them; bring it back under its name, or: tocsin accounts discard ${name}`,
  },
  'feed-stalled': {
    severity: 'high',
    now: (name) => `feed ${name} has not been read to its end`,
    was: (name) => `feed ${name} was not read to its end`,
    toDo: () => 'tocsin feeds list',
  },
  'feed-unreadable': {
    severity: 'critical',
    now: (name) =>
      `half or more of what feed ${name} shows has not been readable, and nobody is told`,
    was: (name) => `half or more of what feed ${name} showed was not readable`,
    toDo: (name) => `tocsin items list --feed ${name} --state quarantined`,
  },
  'items-quarantined': {
    severity: 'high',
    now: (name) => `items of feed ${name} have not been readable, and nobody is told of them`,
    was: (name) => `items of feed ${name} were not readable`,
    toDo: (name) =>
      `tocsin items list --feed ${name} --state quarantined; with a Tocsin that reads them: tocsin items resend --feed ${name} --state quarantined`,
  },
  'feed-refused': {
    severity: 'high',
    now: (name) => `the service has refused what feed ${name} asks for`,
    was: (name) => `the service refused what feed ${name} asks for`,
    toDo: () =>
      "give the key's user access, or use another type, see cause; the feed asks again within a day (after a 403 within an hour), and at once with another key",
  },
  'quota-reserve': {
    severity: 'high',
    now: (name) => `feed ${name} has stood still at the reserve of its quota`,
    was: (name) => `feed ${name} stood still at the reserve of its quota`,
    toDo: (name) => `wait for the quota to be renewed, or lower feeds.${name}.quota_reserve`,
  },
  'circuit-open': {
    severity: 'high',
    now: (name) => `sink ${name} has not taken messages`,
    was: (name) => `sink ${name} did not take messages`,
    toDo: (name) => `tocsin sinks test ${name}; once it is mended: tocsin sinks resume ${name}`,
  },
  'sink-disabled': {
    severity: 'critical',
    now: (name) => `sink ${name} is gone and has been disabled`,
    was: (name) => `sink ${name} was gone and disabled`,
    toDo: (name) =>
      `correct the address of sinks.${name} in the configuration; if it is right: tocsin sinks resume ${name}`,
  },
  'dead-letters': {
    severity: 'high',
    now: (name) => `sink ${name} has had dead letters`,
    was: (name) => `sink ${name} had dead letters`,
    toDo: (name) => `tocsin items list --sink ${name} --state dead`,
  },
  'sink-paused': {
    severity: 'high',
    now: (name) => `sink ${name} has been paused`,
    was: (name) => `sink ${name} was paused`,
    toDo: (name) => `tocsin sinks resume ${name}`,
  },
  'digest-overdue': {
    severity: 'high',
    now: (name) => `the digest of sink ${name} has been overdue`,
    was: (name) => `the digest of sink ${name} was overdue`,
    toDo: (name) => `tocsin sinks flush ${name}`,
  },
  'ledger-lost': {
    severity: 'critical',
    now: () => 'Redis has lost what it held of Tocsin',
    was: () => 'Redis lost what it held of Tocsin',
    toDo: () => lossRemedy,
  },
  'redis-unsafe': {
    severity: 'high',
    now: () => 'Redis has been set up so that it may lose events',
    was: () => 'Redis was set up so that it may lose events',
    toDo: () => 'change the configuration of Redis, see cause',
  },
  'redis-full': {
    severity: 'high',
    now: () => 'Redis has been over 70 % full and nothing more is polled',
    was: () => 'Redis was over 70 % full and nothing more was polled',
    toDo: () => 'raise maxmemory of Redis, or let the sinks take what waits for them',
  },
  unaccounted: {
    severity: 'critical',
    now: () => 'the accounts have not added up',
    was: () => 'the accounts did not add up',
    toDo: () =>
      'tocsin audit --ledger; keep the log and the data of Redis and report them: this is a defect of Tocsin',
  },
} as const satisfies Record<string, TroubleTexts>

type SingleKind = keyof typeof troubles

/** `many`: more than ten troubles of the kind that is its name. */
export type TroubleKind = SingleKind | 'many'

/** Texts of more than ten troubles of a kind at a time: while they last, once over, what to do. */
const manyTexts = {
  'account-refused': [
    'the service has refused the keys of many accounts',
    'the service refused the keys of many accounts',
    'tocsin token test --account <account>',
  ],
  'account-left': [
    'many accounts are not configured any more, and items of them have waited',
    'many accounts were not configured any more, and items of them waited',
    'tocsin accounts list',
  ],
  'feed-stalled': [
    'many feeds have not been read to their end',
    'many feeds were not read to their end',
    'tocsin feeds list',
  ],
  'feed-unreadable': [
    'half or more of what many feeds show has not been readable, and nobody is told',
    'half or more of what many feeds showed was not readable',
    'tocsin items list --state quarantined',
  ],
  'items-quarantined': [
    'items of many feeds have not been readable, and nobody is told of them',
    'items of many feeds were not readable',
    'tocsin items list --state quarantined',
  ],
  'feed-refused': [
    'the service has refused what many feeds ask for',
    'the service refused what many feeds ask for',
    'tocsin feeds list',
  ],
  'quota-reserve': [
    'many feeds have stood still at the reserve of their quota',
    'many feeds stood still at the reserve of their quota',
    'tocsin feeds list',
  ],
  'circuit-open': [
    'many sinks have not taken messages',
    'many sinks did not take messages',
    'tocsin sinks list',
  ],
  'sink-disabled': [
    'many sinks are gone and have been disabled',
    'many sinks were gone and disabled',
    'tocsin sinks list',
  ],
  'dead-letters': [
    'many sinks have had dead letters',
    'many sinks had dead letters',
    'tocsin items list --state dead',
  ],
  'sink-paused': ['many sinks have been paused', 'many sinks were paused', 'tocsin sinks list'],
  'digest-overdue': [
    'the digests of many sinks have been overdue',
    'the digests of many sinks were overdue',
    'tocsin sinks list',
  ],
} as const satisfies Partial<Record<SingleKind, readonly [now: string, was: string, toDo: string]>>

export function troubleTexts({ kind, name }: TroubleName): TroubleTexts {
  if (kind !== 'many') return troubles[kind]
  const alike = name as keyof typeof manyTexts
  const [now, was, toDo] = manyTexts[alike]
  const { severity } = troubles[alike]
  return { severity, now: () => now, was: () => was, toDo: () => toDo }
}

const sinkTroubles: readonly TroubleKind[] = [
  'circuit-open',
  'sink-disabled',
  'dead-letters',
  'sink-paused',
  'digest-overdue',
]

/** The sink in trouble; null: the trouble is not a sink's. */
export function troubledSink({ kind, name }: TroubleName): string | null {
  return sinkTroubles.includes(kind) ? name : null
}

/** `feed-stalled-brand`: part of the event's uid, and names the condition in Redis. */
export function conditionId({ kind, name }: TroubleName): string {
  return name === null ? kind : `${kind}-${name}`
}

/** Returns undefined for an id of a kind that only another version has. */
export function parseConditionId(id: string): TroubleName | undefined {
  if (id.startsWith('many-')) return parseMany(id.slice('many-'.length))
  const kinds = Object.keys(troubles) as SingleKind[]
  const kind = kinds.find((known) => id === known || id.startsWith(`${known}-`))
  if (kind === undefined) return undefined
  return { kind, name: id === kind ? null : id.slice(kind.length + 1) }
}

function parseMany(name: string): TroubleName | undefined {
  return Object.hasOwn(manyTexts, name) ? { kind: 'many', name } : undefined
}

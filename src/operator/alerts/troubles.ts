/** The problems that there are and what to do about each; those that operators are alerted to, with their texts. */
import { lossRemedy } from '../../store/account-ledger.ts'

/** What is looked at; the subject is the name of one. */
export type Check = 'daemon' | 'account' | 'feed' | 'delivery' | 'accounting'

/** What is wrong with the daemon, an account, a feed or a sink. */
export interface Problem {
  kind: ProblemKind
  check: Check
  /** Which account, feed or sink. */
  subject: string
  /** `problem`: somebody must act; `warning`: somebody may want to know. */
  status: 'problem' | 'warning'
  /** The cause, in words; outside text in it is not sanitized. */
  detail: string
  remedy: string
  /** ISO 8601, where it is known. */
  since?: string
  /** Nothing is read or sent by the subject meanwhile. */
  stops?: true
  /** The account whose refused key explains it. */
  behindAccount?: string
}

/**
 * What is in trouble, e.g. feed `brand`; null if there is only one of its kind. Of `many` the name
 * is the kind of which there are many.
 */
export interface TroubleName {
  kind: TroubleKind
  name: string | null
}

interface Trouble {
  severity: 'high' | 'critical'
  /** Whom it befalls; the name follows. */
  subject: string
  /** While it lasts and once it is over; "for 22 min" follows while it lasts. */
  text: string
  /** What an operator does; a command where there is one. */
  toDo: (name: string) => string
}

const troubles = {
  'account-refused': {
    severity: 'critical',
    subject: 'account',
    text: 'key refused by the service',
    toDo: () => 'give the account a valid key, then: tocsin doctor',
  },
  'account-left': {
    severity: 'high',
    subject: 'account',
    text: 'not configured any more, with items that wait',
    toDo: (name) =>
      `tocsin sinks list says what keeps them; bring it back under its name, or: tocsin items discard --account ${name}`,
  },
  'feed-stalled': {
    severity: 'high',
    subject: 'feed',
    text: 'not read to the end',
    toDo: (name) => `tocsin feeds list ${name}`,
  },
  'feed-unreadable': {
    severity: 'critical',
    subject: 'feed',
    text: 'half or more of a page unreadable, and nobody is told of it',
    toDo: (name) => `tocsin items list --feed ${name} --state quarantined`,
  },
  'items-quarantined': {
    severity: 'high',
    subject: 'feed',
    text: 'unreadable items, and nobody is told of them',
    toDo: (name) =>
      `tocsin items list --feed ${name} --state quarantined; to close them: tocsin items discard --feed ${name} --state quarantined`,
  },
  'circuit-open': {
    severity: 'high',
    subject: 'sink',
    text: 'messages not taken',
    toDo: (name) => `tocsin sinks test ${name}; once it is mended: tocsin sinks resume ${name}`,
  },
  'sink-disabled': {
    severity: 'critical',
    subject: 'sink',
    text: 'gone, and disabled',
    toDo: (name) =>
      `correct the address of sinks.${name} in the configuration; if it is right: tocsin sinks resume ${name}`,
  },
  'dead-letters': {
    severity: 'high',
    subject: 'sink',
    text: 'dead letters',
    toDo: (name) => `tocsin items list --sink ${name} --state dead`,
  },
  'ledger-lost': {
    severity: 'critical',
    subject: 'Redis',
    text: 'what it held of Tocsin is lost',
    toDo: () => lossRemedy,
  },
  'redis-full': {
    severity: 'high',
    subject: 'Redis',
    text: 'over 70 % full, nothing more is polled',
    toDo: () => 'raise maxmemory of Redis, or let the sinks take what waits for them',
  },
  unaccounted: {
    severity: 'critical',
    subject: 'account',
    text: 'its counters do not add up',
    toDo: () =>
      'tocsin audit --ledger; keep the log and the data of Redis and report them: this is a defect of Tocsin',
  },
} as const satisfies Record<string, Trouble>

/** Of what commands and the page show, and no self-alert tells. */
const otherRemedies = {
  'daemon-down': () => 'start it',
  'daemon-quiet': () => 'start it, unless it is being restarted just now',
  'account-discarding': (name) => `end it: tocsin accounts discard ${name}`,
  'feed-paused': (name) => `tocsin feeds resume ${name}`,
  'feed-failing': (name) => `tocsin feeds list ${name}`,
  'feed-dated-ahead': () => 'tell the service that a date is wrong',
  'rescans-failing': () => 'what comes late is not found meanwhile',
  'rescans-overdue': () =>
    'what comes late is not found meanwhile: shorten rescan.back, or lengthen rescan.every',
  'quota-reserve': (name) =>
    `wait for the quota to be renewed, or lower feeds.${name}.quota_reserve`,
  'sink-left': (name) =>
    `tocsin items move --sink ${name} --to <sink>, or tocsin items discard --sink ${name}`,
  'sink-paused': (name) => `tocsin sinks resume ${name}`,
  'sink-overdue': (name) => `tocsin sinks test ${name}`,
  'sink-failing': (name) => `tocsin sinks test ${name}`,
  'criticals-owed': (name) => `tocsin items list --sink ${name} --state pending`,
  'recipient-failing': (name) =>
    `correct the recipient at the mail server or in the file; tocsin sinks resume ${name}`,
  'digest-overdue': () => 'see which loop hangs at /healthz, then the log',
  'canary-late': (name) => `tocsin sinks test ${name}`,
} as const satisfies Record<string, Trouble['toDo']>

type SingleKind = keyof typeof troubles

/** `many`: more than ten troubles of the kind that is its name. */
export type TroubleKind = SingleKind | 'many'

export type ProblemKind = SingleKind | keyof typeof otherRemedies

export function isAlerted(kind: ProblemKind): kind is SingleKind {
  return Object.hasOwn(troubles, kind)
}

/** What an operator does about a problem of the account, feed or sink of that name. */
export function findRemedy(kind: ProblemKind, name: string): string {
  return (isAlerted(kind) ? troubles[kind].toDo : otherRemedies[kind])(name)
}

interface TroubleText {
  severity: Trouble['severity']
  /** `feed brand: not read to the end` */
  title: string
  toDo: string
}

export function describeTrouble({ kind, name }: TroubleName): TroubleText {
  if (kind === 'many') {
    const { severity, subject, text, toDo } = troubles[name as SingleKind]
    return { severity, title: `many ${subject}s: ${text}`, toDo: toDo(`<${subject}>`) }
  }
  const { severity, subject, text, toDo } = troubles[kind]
  const whose = name === null ? subject : `${subject} ${name}`
  return { severity, title: `${whose}: ${text}`, toDo: toDo(name ?? '') }
}

/** The sink in trouble; null: the trouble is not a sink's. */
export function troubledSink({ kind, name }: TroubleName): string | null {
  return kind !== 'many' && troubles[kind].subject === 'sink' ? name : null
}

/** `feed-stalled-brand`: part of the event's uid, and names the condition in Redis. */
export function conditionId({ kind, name }: TroubleName): string {
  return name === null ? kind : `${kind}-${name}`
}

/** Returns undefined for an id of a kind that only another version has. */
export function parseConditionId(id: string): TroubleName | undefined {
  if (id.startsWith('many-')) {
    const name = id.slice('many-'.length)
    return Object.hasOwn(troubles, name) ? { kind: 'many', name } : undefined
  }
  const kinds = Object.keys(troubles) as SingleKind[]
  const kind = kinds.find((known) => id === known || id.startsWith(`${known}-`))
  if (kind === undefined) return undefined
  return { kind, name: id === kind ? null : id.slice(kind.length + 1) }
}

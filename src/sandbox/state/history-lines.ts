/** What a line of the history file says, and the history that the lines together tell. */
import { z } from 'zod'
import type { CredentialPlace } from '../credentials/credential-generator.ts'
import { credentialUid } from '../credentials/credential-history.ts'
import type { SandboxCredential } from '../credentials/sandbox-credential.ts'
import type { GeneratorPlace } from '../history/generator.ts'
import type { SandboxEvent } from '../history/sandbox-event.ts'

/**
 * `events` and `credentials` say how far their generator was when the ones behind it were made, so
 * that none comes again; the others are the things themselves, and what changed of them since.
 */
export type HistoryLine =
  | ['events', GeneratorPlace]
  | ['credentials', CredentialPlace]
  | ['event', SandboxEvent]
  | ['credential', SandboxCredential]
  | ['event changed' | 'credential changed', uid: string, change: object]

export interface ToldHistory {
  events: SandboxEvent[]
  credentials: SandboxCredential[]
  /** Of the generators; undefined: nothing was made yet. */
  eventPlace: GeneratorPlace | undefined
  credentialPlace: CredentialPlace | undefined
}

const text = z.string()
const named = z.object({ id: z.number(), name: text })

/** As much as a page needs to be written; the rest is taken as it stands. */
const event = z.looseObject({
  uid: text,
  type: text,
  createdAtMs: z.number(),
  arrivedAtMs: z.number(),
  groupIds: z.array(z.number()),
  identifiers: z.array(named),
  tags: z.array(text),
  highlights: z.record(text, z.array(text)),
})
const credential = z.looseObject({
  id: z.number(),
  importedAtMs: z.number(),
  arrivedAtMs: z.number(),
  identifierIds: z.array(z.number()),
  authDomains: z.array(text),
})
const change = z.looseObject({})
const place = z.object({ number: z.int(), seed: z.int() })

const historyLine = z.union([
  z.tuple([z.literal('event'), event]),
  z.tuple([z.literal('credential'), credential]),
  z.tuple([z.literal('events'), place]),
  z.tuple([z.literal('credentials'), place.extend({ id: z.int() })]),
  z.tuple([z.enum(['event changed', 'credential changed']), text, change]),
])

export function parseHistoryLine(line: string): HistoryLine {
  return historyLine.parse(JSON.parse(line)) as HistoryLine
}

/** Takes lines in one after the other; throws where one speaks of what is not there. */
export function createTelling(): { told: ToldHistory; take: (line: HistoryLine) => void } {
  const told: ToldHistory = {
    events: [],
    credentials: [],
    eventPlace: undefined,
    credentialPlace: undefined,
  }
  const byUid = new Map<string, object>()

  function enter(uid: string, thing: object): void {
    if (byUid.has(uid)) throw new Error(`${uid} is there twice`)
    byUid.set(uid, thing)
  }

  return {
    told,
    take(line) {
      switch (line[0]) {
        case 'events':
          told.eventPlace = line[1]
          return
        case 'credentials':
          told.credentialPlace = line[1]
          return
        case 'event':
          enter(line[1].uid, line[1])
          told.events.push(line[1])
          return
        case 'credential':
          enter(credentialUid(line[1].id), line[1])
          told.credentials.push(line[1])
          return
        case 'event changed':
        case 'credential changed': {
          const thing = byUid.get(line[1])
          if (!thing) throw new Error(`${line[1]} is not there`)
          Object.assign(thing, line[2])
        }
      }
    },
  }
}

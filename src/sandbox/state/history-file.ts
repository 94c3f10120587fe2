/**
 * The history of the sandbox: one line of JSON per arrival or change. A line is written before
 * anybody is shown what it says, and never rewritten, so an event costs one line however long the
 * file is.
 */
import {
  appendFileSync,
  closeSync,
  createReadStream,
  existsSync,
  openSync,
  truncateSync,
} from 'node:fs'
import { z } from 'zod'
import { errorMessage, TocsinError } from '../../lib/errors.ts'
import { replacePrivateFile } from '../../lib/private-files.ts'
import type { CredentialGeneratorState } from '../credentials/generator.ts'
import {
  type CredentialHistory,
  credentialUid,
  type SandboxCredential,
} from '../credentials/history.ts'
import type { GeneratorState } from '../history/generator.ts'
import type { History, SandboxEvent } from '../history/history.ts'

export interface HistoryFile {
  /** What the file held when it was opened. */
  stored: StoredHistory
  append(lines: readonly HistoryLine[]): void
  close(): void
}

const heading = JSON.stringify({ format: 'tocsin sandbox history', version: 1 })
/** Maximum number of lines joined into one text in memory. */
const linesAtOnce = 1000

export async function openHistoryFile(file: string): Promise<HistoryFile> {
  if (!existsSync(file)) replacePrivateFile(file, `${heading}\n`)
  const stored = await readHistory(file)
  const descriptor = openSync(file, 'a')

  return {
    stored,
    append(lines) {
      for (let start = 0; start < lines.length; start += linesAtOnce) {
        const chunk = lines.slice(start, start + linesAtOnce)
        appendFileSync(descriptor, chunk.map((line) => `${JSON.stringify(line)}\n`).join(''))
      }
    },
    close: () => closeSync(descriptor),
  }
}

/**
 * Reads the file. An incomplete last line, left by a crash, was never shown to anybody and is
 * removed.
 */
async function readHistory(file: string): Promise<StoredHistory> {
  const { stored: history, take: addLine } = createHistoryReader()
  let number = 0
  let bytes = 0
  let rest = ''
  for await (const chunk of createReadStream(file, { encoding: 'utf8' })) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      number += 1
      bytes += Buffer.byteLength(line) + 1
      if (number === 1) checkHeading(file, line)
      else takeLine(line, number)
    }
  }
  if (number === 0) throw new DataFolderError(file, 'no sandbox wrote it')
  if (rest !== '') truncateSync(file, bytes)
  return history

  function takeLine(line: string, at: number): void {
    try {
      addLine(parseHistoryLine(line))
    } catch (cause) {
      const why =
        cause instanceof Error && cause.name === 'Error' ? ` (${errorMessage(cause)})` : ''
      throw new DataFolderError(file, `line ${at} is damaged${why}`, cause)
    }
  }
}

function checkHeading(file: string, line: string): void {
  if (line === heading) return
  const isOther = line.startsWith('{"format":"tocsin sandbox history"')
  throw new DataFolderError(file, isOther ? 'another version wrote it' : 'no sandbox wrote it')
}

/**
 * A line of the history file. `events` and `credentials` hold the state of their generator after
 * the lines that follow were made, so that nothing is generated twice; the others are items and
 * their changes.
 */
export type HistoryLine =
  | ['events', GeneratorState]
  | ['credentials', CredentialGeneratorState]
  | ['event', SandboxEvent]
  | ['credential', SandboxCredential]
  | ['event changed' | 'credential changed', uid: string, change: object]

interface StoredHistory {
  events: SandboxEvent[]
  credentials: SandboxCredential[]
  /** State of the generators; undefined: nothing was generated yet. */
  eventGenerator: GeneratorState | undefined
  credentialGenerator: CredentialGeneratorState | undefined
}

const text = z.string()
const named = z.object({ id: z.number(), name: text })

/** Checks only what a page needs; the rest passes as it is. */
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

function parseHistoryLine(line: string): HistoryLine {
  return historyLine.parse(JSON.parse(line)) as HistoryLine
}

/**
 * Collects lines in order. Throws if a line repeats an item, or changes one that does not exist.
 */
function createHistoryReader(): { stored: StoredHistory; take: (line: HistoryLine) => void } {
  const history: StoredHistory = {
    events: [],
    credentials: [],
    eventGenerator: undefined,
    credentialGenerator: undefined,
  }
  const byUid = new Map<string, object>()

  function addThing(uid: string, thing: object): void {
    if (byUid.has(uid)) throw new Error(`${uid} is there twice`)
    byUid.set(uid, thing)
  }

  return {
    stored: history,
    take(line) {
      switch (line[0]) {
        case 'events':
          history.eventGenerator = line[1]
          return
        case 'credentials':
          history.credentialGenerator = line[1]
          return
        case 'event':
          addThing(line[1].uid, line[1])
          history.events.push(line[1])
          return
        case 'credential':
          addThing(credentialUid(line[1].id), line[1])
          history.credentials.push(line[1])
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

/**
 * Returns a history that starts with the contents of `file` and appends every change to it before
 * anybody can read it. `place`: the state of the event generator.
 */
export function recordedHistory(
  history: History,
  file: HistoryFile | null,
  place: () => GeneratorState,
): History {
  if (!file) return history
  history.add(file.stored.events)
  return {
    ...history,
    add(events) {
      history.add(events)
      if (events.length === 0) return
      const lines = events.map((event): HistoryLine => ['event', event])
      file.append([['events', place()], ...lines])
    },
    change(uid, change) {
      history.change(uid, change)
      file.append([['event changed', uid, change]])
    },
    place(uid, places) {
      history.place(uid, places)
      file.append([['event changed', uid, places]])
    },
  }
}

/** As `recordedHistory`, for credentials. */
export function recordedCredentials(
  history: CredentialHistory,
  file: HistoryFile | null,
  place: () => CredentialGeneratorState,
): CredentialHistory {
  if (!file) return history
  history.add(file.stored.credentials)
  return {
    ...history,
    add(credentials) {
      history.add(credentials)
      if (credentials.length === 0) return
      const lines = credentials.map((credential): HistoryLine => ['credential', credential])
      file.append([['credentials', place()], ...lines])
    },
    change(uid, change) {
      history.change(uid, change)
      file.append([['credential changed', uid, change]])
    },
  }
}

/** The sandbox cannot use its data folder. The message names the file and the remedy. */
export class DataFolderError extends TocsinError {
  override readonly name = 'DataFolderError'
  readonly code = 'TOCSIN_SANDBOX'

  constructor(file: string, problem: string, cause?: unknown) {
    const remedy = 'put it back from a copy, or choose another folder with --data'
    super(`the sandbox cannot go on from ${file}: ${problem}; ${remedy}`, { cause })
  }
}

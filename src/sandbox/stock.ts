/** What the pretend service has to show: its events and credentials, and how they come and change. */
import type { Loop } from '../runtime/loop.ts'
import {
  createCredentialHistory,
  type CredentialHistory,
} from './credentials/credential-history.ts'
import { createCredentialGenerator } from './credentials/credential-generator.ts'
import { createCredentialSupply, type CredentialSupply } from './credentials/credential-supply.ts'
import type { SandboxCredential } from './credentials/sandbox-credential.ts'
import { createEventSupply, type EventSupply } from './history/event-supply.ts'
import { createGenerator } from './history/generator.ts'
import { createHistory, type History } from './history/history.ts'
import type { SandboxEvent } from './history/sandbox-event.ts'
import type { Watch } from './history/watch.ts'
import type { SandboxSettings } from './options.ts'
import type { HistoryFile } from './state/history-file.ts'
import { recordedCredentials, recordedHistory } from './state/recorded.ts'

export interface Stock {
  history: History
  credentialHistory: CredentialHistory
  supply: StockSupply
  hasUid: (uid: string) => boolean
  /** Those that let something arrive by itself, where the settings ask for it. */
  arrivals: Loop[]
}

/** What whoever runs the sandbox may do with it; a uid is an event's, or `credential/<id>`. */
export interface StockSupply extends EventSupply, CredentialSupply {
  /** Which events stand, in order of arrival; so for credentials. */
  events(): readonly SandboxEvent[]
  credentials(): readonly SandboxCredential[]
  /** The tenant overrides an event's severity. */
  raise(uid: string, severity: string): void
  /** Without a time: now. Of an event see `showsIgnored`. */
  markIgnored(uid: string, atMs?: number): void
  markRemediated(uid: string, atMs?: number): void
}

/** `file`: where it goes on from, and what it is written to; null: from nothing, to nowhere. */
export function createStock(
  given: SandboxSettings,
  watch: Watch,
  file: HistoryFile | null = null,
): Stock {
  const { eventPlace, credentialPlace } = file?.told ?? {}
  const generator = createGenerator(given.seed, eventPlace)
  const history = recordedHistory(createHistory(), file, generator.place)
  const leaks = createCredentialGenerator(given.seed + 6, credentialPlace)
  const credentialHistory = recordedCredentials(createCredentialHistory(), file, leaks.place)
  const settings = {
    ...given,
    backlog: eventPlace ? 0 : given.backlog,
    credentialBacklog: credentialPlace ? 0 : given.credentialBacklog,
  }
  const events = createEventSupply(settings, { history, watch, generator })
  const credentials = createCredentialSupply(settings, {
    history: credentialHistory,
    generator: leaks,
  })

  function change(uid: string, times: Partial<Pick<SandboxEvent, ChangedTime>>): void {
    if (credentialHistory.get(uid)) credentialHistory.change(uid, times)
    else history.change(uid, times)
  }

  return {
    history,
    credentialHistory,
    hasUid: (uid) => (history.get(uid) ?? credentialHistory.get(uid)) !== undefined,
    supply: {
      ...events.supply,
      ...credentials.supply,
      events: history.all,
      credentials: credentialHistory.all,
      raise: (uid, severity) => history.change(uid, { override: severity }),
      markIgnored: (uid, atMs = settings.now()) => change(uid, { ignoredAtMs: atMs }),
      markRemediated: (uid, atMs = settings.now()) => change(uid, { remediatedAtMs: atMs }),
    },
    arrivals: [events.arrivals, credentials.arrivals].filter((loop) => loop !== undefined),
  }
}

type ChangedTime = 'ignoredAtMs' | 'remediatedAtMs'

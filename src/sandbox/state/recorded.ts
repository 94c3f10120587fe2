/** Histories that write down what comes and what changes, before anybody can ask for it. */
import type { CredentialHistory } from '../credentials/credential-history.ts'
import type { CredentialPlace } from '../credentials/credential-generator.ts'
import type { GeneratorPlace } from '../history/generator.ts'
import type { History } from '../history/history.ts'
import type { HistoryFile } from './history-file.ts'
import type { HistoryLine } from './history-lines.ts'

/** `history` begins with what `file` told. `place`: how far the generator of events is. */
export function recordedHistory(
  history: History,
  file: HistoryFile | null,
  place: () => GeneratorPlace,
): History {
  if (!file) return history
  history.add(file.told.events)
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

/** As `recordedHistory`, of credentials. */
export function recordedCredentials(
  history: CredentialHistory,
  file: HistoryFile | null,
  place: () => CredentialPlace,
): CredentialHistory {
  if (!file) return history
  history.add(file.told.credentials)
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

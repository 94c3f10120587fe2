/** The probe of the words in the filters of feeds: whether the service knows them. */
import type { FeedConfig } from '../../feed-types/config.ts'
import { systemClock } from '../../lib/clock.ts'
import { findNearest } from '../../lib/errors.ts'
import { UpstreamError } from '../../upstream/error.ts'
import { eventOperations } from '../../upstream/resources/events.ts'
import { type AccountNeeds, accountTimeoutMs } from './account-probes.ts'
import type { Finding, Probe, Subject } from '../../operator/probe.ts'

/** One request for each kind of filter that a feed of the account has. */
export const filterProbe: Probe<AccountNeeds> = {
  name: 'filters',
  timeoutMs: accountTimeoutMs,
  ifLate: 'warning', // by the rate limit: the network gave the key's answer just now
  subject: ({ client }) => client.account.name,
  async find({ config, client }, subject, signal) {
    const own = config.feeds.filter((feed) => feed.account === client.account.name)
    const found: Finding[] = []
    let isAsked = false
    for (const kind of ['type', 'severity'] as const) {
      const wanted = own.flatMap((feed) => wordsOf(feed, kind))
      if (wanted.length === 0) continue
      isAsked = true
      const slot = { kind: 'command', name: 'doctor', dueSinceMs: systemClock.now() } as const
      const list = kind === 'type' ? eventOperations.types : eventOperations.severities
      try {
        const known = await client.call(list, {}, { slot, signal })
        found.push(...judgeWords(wanted, { kind, known, subject }))
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error
        const status = error.status === 404 ? 'warning' : 'problem' // not every service has the lists
        const detail = `whether the service knows the words of ${kind} filters could not be found out: ${error.message}`
        found.push(subject.bad(status, detail, 'run doctor again'))
      }
    }
    if (found.length > 0 || !isAsked) return found
    return [subject.good('the service knows every word of the filters')]
  },
}

type Kind = 'type' | 'severity'

interface Word {
  feed: string
  word: string
}

/** Of feeds that use the v4 event searches; `check` compares the words of others with lists. */
function wordsOf(feed: FeedConfig, kind: Kind): Word[] {
  if (!('filters' in feed)) return []
  const { filters } = feed as { filters?: Partial<Record<Kind, unknown>> }
  const words = [filters?.[kind] ?? []].flat().filter((word) => typeof word === 'string')
  return words.map((word) => ({ feed: feed.name, word }))
}

function judgeWords(
  wanted: readonly Word[],
  { kind, known, subject }: { kind: Kind; known: readonly string[]; subject: Subject },
): Finding[] {
  if (known.length === 0) {
    const detail = `the service lists no word for ${kind} filters`
    return [subject.bad('warning', detail, 'run doctor again')]
  }
  return wanted
    .filter(({ word }) => !known.includes(word))
    .map(({ feed, word }) => {
      const nearest = findNearest(word, known)
      const remedy = nearest === undefined ? 'write one of its words' : `did you mean "${nearest}"?`
      const detail = `feed ${feed}: filters.${kind} "${word}" is no filter of this service, which would refuse the feed (422)`
      return subject.bad('problem', detail, remedy)
    })
}

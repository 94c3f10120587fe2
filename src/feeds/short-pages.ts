/**
 * Whether a short page ends a feed, learned by endpoint. The service gives a `next` with nearly every page that
 * has items, also with the last one; following it costs a request that finds nothing. Where an empty page has
 * followed a short one three times, a short page counts as the end. One short page in twenty is followed all
 * the same; as soon as one is followed by items that were there before, nothing is taken for granted any more.
 */
export interface ShortPages {
  /** The last page of a feed's tail, for a turn that begins now; the turn changes it. */
  last(feed: { account: string; name: string }): ShortPage
  /** Whether the feed counts as read to its end after a short page that has a `next`. */
  isEnd(endpoint: string): boolean
  /** Notes what followed a short page: nothing, items that came meanwhile, or older ones. */
  noteFollowing(endpoint: string, following: 'nothing' | 'newer' | 'older'): void
}

/** The last page of a tail, if it was a short one. */
export interface ShortPage {
  /** When it was asked for, this machine's clock; undefined: it was not short. */
  askedAtMs: number | undefined
  /** When its walk began: another walk shows what was there before, as it should. */
  walkBegunMs?: number | undefined
  /** What was matched up to so long before that may have become visible only since, ms; 0 within a turn. */
  graceMs: number
}

export function noShortPage(): ShortPage {
  return { askedAtMs: undefined, graceMs: 0 }
}

/** Between two turns. The service shows events seconds after their match. */
const usualLatenessMs = 60_000
const enough = 3
const followedOneIn = 20

export function createShortPages(): ShortPages {
  const confirmed = new Map<string, number>()
  const passed = new Map<string, number>()
  const lastPages = new Map<string, ShortPage>()
  return {
    last({ account, name }) {
      const id = `${account}/${name}`
      const page = lastPages.get(id) ?? noShortPage()
      lastPages.set(id, page)
      page.graceMs = usualLatenessMs
      return page
    },
    isEnd(endpoint) {
      if ((confirmed.get(endpoint) ?? 0) < enough) return false
      const count = ((passed.get(endpoint) ?? 0) + 1) % followedOneIn
      passed.set(endpoint, count)
      return count !== 0
    },
    noteFollowing(endpoint, following) {
      if (following === 'newer') return
      confirmed.set(endpoint, following === 'nothing' ? (confirmed.get(endpoint) ?? 0) + 1 : 0)
    },
  }
}

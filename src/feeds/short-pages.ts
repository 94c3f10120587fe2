/**
 * Whether a short page ends a feed, learned by endpoint. The service gives a `next` with nearly every page that
 * has items, also with the last one; following it costs a request that finds nothing. Where an empty page has
 * followed a short one three times, a short page counts as the end. One short page in twenty is followed all
 * the same; as soon as one is followed by items that were there before, nothing is taken for granted any more.
 */
export interface ShortPages {
  /** Whether the feed counts as read to its end after a short page that has a `next`. */
  isEnd(endpoint: string): boolean
  /** Notes what followed a short page: nothing, items that came meanwhile, or older ones. */
  noteFollowing(endpoint: string, following: 'nothing' | 'newer' | 'older'): void
}

const enough = 3
const followedOneIn = 20

export function createShortPages(): ShortPages {
  const confirmed = new Map<string, number>()
  const passed = new Map<string, number>()
  return {
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

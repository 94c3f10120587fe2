/**
 * The service of one feed as a script: every habit that its paging has or may have, decided by a seed,
 * so that a failing history can be told again. It stands where a UpstreamClient stands.
 */
import type { UpstreamClient } from '../../src/upstream/client.ts'
import { UpstreamError } from '../../src/upstream/error.ts'
import type { WireSearchPage } from '../../src/upstream/resources/page.ts'
import { callBy } from './call.ts'

export interface ScriptedItem {
  id: number
  createdMs: number
}

type Compare = (a: ScriptedItem, b: ScriptedItem) => number

const orders: Record<Habits['order'], Compare> = {
  byTime: (a, b) => a.createdMs - b.createdMs || a.id - b.id,
  newest: (a, b) => b.createdMs - a.createdMs || b.id - a.id,
  ascending: (a, b) => a.id - b.id,
  shuffled: (a, b) => mixed(a.id) - mixed(b.id),
}

export interface Habits {
  /** `byTime` and `newest` go by the time of creation, `ascending` by id; `shuffled` means nothing. */
  order: 'byTime' | 'newest' | 'ascending' | 'shuffled'
  /**
   * What the last page has for `next`: null, no such key, an empty text; `empty`: null comes with an empty
   * page; `echo`: an empty page repeats the cursor it got; `inclusive`: so does one that shows the last item
   * once more.
   */
  end: 'null' | 'absent' | 'blank' | 'empty' | 'echo' | 'inclusive'
  /** A page may show one of its items twice, or the one before it again. */
  repeats: boolean
  /** Larger pages get a gateway's 504. */
  sizeLimit: number
  /** A page that shows more items than this is too large to be read. */
  readable: number
  ignoresTimes: boolean
  /** At most so many new items a page, fewer as the seed wants, none in the middle now and then; Infinity: full pages. */
  places: number
  seed: number
}

export interface ScriptedService {
  client: UpstreamClient
  habits: Habits
  items: ScriptedItem[]
  /** Items that show from now on, by when they were created. */
  insert(...createdMs: number[]): void
  /** Every cursor given out so far is refused from now on. */
  expireCursors(): void
  requests: { kind: string; from: string | null; size: number }[]
}

interface ScriptedRequest {
  from?: string | null
  size: number
  filters?: Record<'estimated_created_at' | 'imported_at', { gte?: string; lte?: string }>
  /** Of the cookies. */
  imported_after?: string
}

interface Asked {
  kind: string
  from: string | null
  size: number
  gteMs: number
  lteMs: number
}

export function createScriptedService(
  given: Habits,
  nowMs: () => number = Date.now,
): ScriptedService {
  const habits = { ...given }
  const items: ScriptedItem[] = []
  const requests: ScriptedService['requests'] = []
  let epoch = 0
  let dice = habits.seed

  function roll(sides: number): number {
    dice = mixed(dice + 1)
    return dice % sides
  }

  function read({ kind, from, size, gteMs, lteMs }: Asked): WireSearchPage & { ids: number[] } {
    requests.push({ kind, from, size })
    if (size > habits.sizeLimit) throw failure('unavailable', 504)
    const [given = epoch, afterId = -1, nudge = 0] = (from ?? '')
      .split('.')
      .filter(Boolean)
      .map(Number)
    if (given !== epoch) throw failure('rejected', 400)
    const isWithin = ({ createdMs }: ScriptedItem): boolean =>
      habits.ignoresTimes || (createdMs >= gteMs && createdMs <= lteMs)
    const list = items.filter(isWithin).toSorted(orders[habits.order])
    const start = list.findIndex(({ id }) => id === afterId) + 1
    const places = habits.places === Infinity ? size : Math.min(size, roll(habits.places + 1))
    const cursorOf = (id: number): string => `${epoch}.${id}`
    if (places === 0 && nudge === 0) {
      return { items: [], ids: [], next: `${cursorOf(afterId)}.1` }
    }
    const window = list.slice(start, start + Math.max(1, places))
    const follows = start + window.length < list.length
    const last = window.at(-1)
    const again = habits.repeats
      ? [list[start - 1 + roll(2)]].filter((item) => item !== undefined)
      : []
    const inclusive = habits.end === 'inclusive' && !last && from !== null ? list.slice(-1) : []
    const shown = last ? [...window, ...again] : inclusive
    const ids = shown.map(({ id }) => id)
    if (size > 1 && ids.length > habits.readable) throw tooLarge()
    if (follows && last) return { items: [], ids, next: cursorOf(last.id) }
    return { items: [], ids, ...endOf(last && cursorOf(last.id), from) }
  }

  function endOf(last: string | undefined, from: string | null): { next?: string | null } {
    if (habits.end === 'absent') return {}
    if (habits.end === 'blank') return { next: '' }
    if (habits.end === 'empty') return { next: last ?? null }
    return { next: habits.end === 'null' ? null : (last ?? from) }
  }

  function answer(asked: Asked, show: (item: ScriptedItem) => unknown) {
    const { ids, ...page } = read(asked)
    const shown = ids.map((id) => show(items.find((item) => item.id === id)!))
    return Promise.resolve({ page: { ...page, items: shown }, requestedAtMs: nowMs() })
  }

  const call = callBy((name, request: ScriptedRequest, { slot: { kind } }) => {
    const { from = null, size, filters, imported_after } = request
    switch (name) {
      case 'events.search-group':
      case 'events.search-tenant':
      case 'events.search-identifier':
      case 'events.search':
        return answer(askedBy(kind, request, filters?.estimated_created_at ?? {}), eventOf)
      case 'credentials.feed':
      case 'credentials.tenant-feed':
        return answer({ kind, from, size, gteMs: -Infinity, lteMs: Infinity }, credentialOf)
      case 'credentials.search':
        return answer(askedBy(kind, request, filters?.imported_at), credentialOf)
      case 'cookies.search':
        return answer(askedBy(kind, request, { gte: imported_after }), cookieOf)
      default:
        throw new Error(`${name} is not scripted`)
    }
  })

  const client: Pick<UpstreamClient, 'call' | 'capabilities' | 'clockSkewMs'> = {
    call,
    clockSkewMs: () => undefined,
    // a server without a search that costs no quota; it refuses no feed
    capabilities: {
      isRefused: () => Promise.resolve(true),
      refuse: () => Promise.resolve(),
    },
  }
  return {
    client: client as UpstreamClient,
    habits,
    items,
    insert: (...times) => {
      for (const createdMs of times) items.push({ id: items.length + 1, createdMs })
    },
    expireCursors: () => void (epoch += 1),
    requests,
  }
}

function askedBy(
  kind: string,
  { from = null, size }: { from?: string | null | undefined; size: number },
  times: { gte?: string | undefined; lte?: string | undefined } = {},
): Asked {
  const gteMs = times.gte === undefined ? -Infinity : Date.parse(times.gte)
  return {
    kind,
    from,
    size,
    gteMs,
    lteMs: times.lte === undefined ? Infinity : Date.parse(times.lte),
  }
}

function eventOf({ id, createdMs }: ScriptedItem): unknown {
  const estimated_created_at = new Date(createdMs).toISOString()
  return {
    metadata: { uid: `paste/x/${id}`, type: 'paste', severity: 'low', estimated_created_at },
  }
}

function credentialOf({ id, createdMs }: ScriptedItem): unknown {
  const imported_at = new Date(createdMs).toISOString()
  const pair = { identity_name: `user${id}@example.com`, hash: `pass-${id}`, domain: 'example.com' }
  return { id, imported_at, ...pair, source: { id: 'combolists' } }
}

function cookieOf({ id, createdMs }: ScriptedItem): unknown {
  const imported_at = new Date(createdMs).toISOString()
  return { uuid: String(id), imported_at, domain: 'vpn.example.com', name: 'sid', value: `v-${id}` }
}

function tooLarge(): UpstreamError {
  return new UpstreamError('contract', 'the script answers too much', { fault: 'too_large' })
}

function failure(reason: 'unavailable' | 'rejected', status: number): UpstreamError {
  return new UpstreamError(reason, `the script answers ${status}`, { status })
}

/** A number that looks like chance, the same each time. */
function mixed(number: number): number {
  const once = Math.imul(number ^ (number >>> 15), 0x2c_1b_3c_6d)
  const twice = Math.imul(once ^ (once >>> 12), 0x29_7a_2d_39)
  return (twice ^ (twice >>> 15)) >>> 1
}

/** Addresses of the page, and of items in its forms. */
import type { Item, LedgerRecord } from '../../store/records.ts'
import { type Asker, isRestricted } from '../asker.ts'

export { eventPath as eventUrl, messagePath as messageUrl } from '../../messages/page-links.ts'

/** The page of a message about one event, by whose address it is found. */
export function singleMessageUrl(
  id: string,
  { account, recordId }: Pick<LedgerRecord, 'account' | 'recordId'>,
): string {
  return addressOf(`/messages/${id}`, { event: `${account}/${recordId}` })
}

export function addressOf(
  path: string,
  query: Readonly<Record<string, string | number | readonly string[] | null | undefined>>,
): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    [value ?? '']
      .flat()
      .flatMap((one): [string, string][] => (one === '' ? [] : [[name, String(one)]])),
  )
  const text = new URLSearchParams(given).toString()
  return text === '' ? path : `${path}?${text}`
}

export function silenceUrl(id: string): string {
  return `/rules#silence-${id}`
}

/** Where Rules shows what suppressed an item; null: nowhere. The rule of a mute is `route: interval, …`. */
export function ruleUrl(asker: Asker, reason = '', rule: string | null = null): string | null {
  if (rule !== null && reason === 'silence') return silenceUrl(rule)
  const [, interval] = /: ([\w-]+)/.exec(rule ?? '') ?? []
  return interval && reason === 'mute' && !isRestricted(asker) ? `/rules#mute-${interval}` : null
}

/** Names an item of the ledger in a form: the account, and its reference. */
export function itemAddress(
  { account, recordId }: Pick<LedgerRecord, 'account' | 'recordId'>,
  { index, sink }: Pick<Item, 'index' | 'sink'>,
): string {
  return `${account}/i:${recordId}:${index}:${sink}`
}

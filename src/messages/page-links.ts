/** Where messages lead on the page, which people reach under `http.public_url`. */

/** Returns the address of a path of the page; undefined: no address of the page is configured. */
export type PageAddress = (path: string) => string | undefined

export function createPageAddress(publicUrl: string | undefined): PageAddress {
  return (path) => (publicUrl === undefined ? undefined : `${publicUrl}${path}`)
}

/** The page of an event: stable as long as the ledger keeps the event. */
export function eventPath({ account, recordId }: { account: string; recordId: string }): string {
  return `/events/${encode(account)}/${encode(recordId)}`
}

/**
 * The page of a message about several events; `id`: of its delivery. `aroundMs`: about when it was sent, by
 * which it is found at once, else among all that was told.
 */
export function messagePath(id: string, aroundMs: number | undefined): string {
  const at = aroundMs === undefined ? '' : `?at=${Math.floor(aroundMs)}`
  return `/messages/${encode(id)}${at}`
}

/** An address cannot hold half of a surrogate pair. */
function encode(part: string): string {
  return encodeURIComponent(part.toWellFormed())
}

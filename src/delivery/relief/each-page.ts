/** Of work that may last: in pages, so that it can be broken off, and says that it lives. */
export interface Paging {
  /** Asked before each page. */
  goesOn: () => Promise<boolean>
  /** Told after each page. */
  alive: () => void
}

const pageLength = 200

/** Of one list in one pass: what is more waits for the next. */
const maxPages = 50

/** Works through a list that what is done leaves; `work` says how many of a page left it. */
export async function eachPage(
  read: (page: { offset: number; count: number }) => Promise<string[]>,
  work: (refs: readonly string[]) => Promise<number>,
  { goesOn, alive }: Paging,
): Promise<void> {
  let left = 0
  for (let page = 0; page < maxPages && (await goesOn()); page += 1) {
    const refs = await read({ offset: left, count: pageLength })
    left += refs.length - (await work(refs))
    alive()
    if (refs.length < pageLength) return
  }
}

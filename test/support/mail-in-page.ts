/** What a browser made of a mail. Scripts are text because they run in a page, where other globals live. */
import type { Page } from 'playwright-core'

export interface Extent {
  scroll: number
  /** The right edge of the element that reaches farthest. */
  widest: number
}

export function extentOf(page: Page): Promise<Extent> {
  return page.evaluate<Extent>(`({
    scroll: document.documentElement.scrollWidth,
    widest: Math.max(
      ...[...document.querySelectorAll('body *')].map((each) => each.getBoundingClientRect().right),
    ),
  })`)
}

export interface Bar {
  width: number
  height: number
  /** The width of the whole bar that this is a part of. */
  row: number
}

export function barsIn(page: Page): Promise<Bar[]> {
  return page.evaluate<Bar[]>(`
    [...document.querySelectorAll('td[height="12"][bgcolor]')].map((cell) => ({
      width: cell.getBoundingClientRect().width,
      height: cell.getBoundingClientRect().height,
      row: cell.closest('table').getBoundingClientRect().width,
    }))`)
}

export interface SeenText {
  text: string
  size: number
  /** Red, green and blue. */
  colour: number[]
  /** The first opaque colour behind it; null: the page's own. */
  background: number[] | null
  opacity: number
}

/** Every text that is shown. */
export function textsIn(page: Page): Promise<SeenText[]> {
  return page.evaluate<SeenText[]>(`(() => {
    const numbers = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number)
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const found = []
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const element = node.parentElement
      const text = node.textContent.replaceAll('\\u00a0', '').trim()
      if (text === '' || element.getBoundingClientRect().height === 0) continue
      let opacity = 1
      let background = null
      for (let at = element; at !== null; at = at.parentElement) {
        const style = getComputedStyle(at)
        opacity *= Number(style.opacity)
        const [red = 0, green = 0, blue = 0, alpha = 1] = numbers(style.backgroundColor)
        if (alpha === 1) background ??= [red, green, blue]
      }
      const style = getComputedStyle(element)
      const colour = numbers(style.color).slice(0, 3)
      found.push({ text, size: Number.parseFloat(style.fontSize), colour, background, opacity })
    }
    return found
  })()`)
}

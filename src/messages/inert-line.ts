import { cleanLine, cutText } from './clean-text.ts'
import { defang, linkMarks } from './defang.ts'

/** Visible ASCII and single spaces: nothing to clean. */
const isClean = /^[!-~]+(?: [!-~]+)*$/u

/** Clean, defanged, cut to code points, in this order: a cut text links no more than the whole. */
export function inertLine(text: string, maxLength: number): string {
  // most of what is cleaned away is a few characters: an endless text need not be read to its end
  const readLength = 8 * maxLength + 200
  if (text.length > readLength) {
    const beginning = text.slice(0, readLength).replace(/[\uD800-\uDBFF]$/u, '')
    return cutText(`${defang(cleanLine(beginning, Infinity))}…`, maxLength)
  }
  if (!isClean.test(text)) return cutText(defang(cleanLine(text, Infinity)), maxLength)
  return cutText(linkMarks.test(text) ? defang(text) : text, maxLength)
}

import { cleanLine, cutText } from './clean-text.ts'
import { defang } from './defang.ts'

/** Clean, defanged, cut to code points, in this order: a cut text links no more than the whole. */
export function inertLine(text: string, maxLength: number): string {
  return cutText(defang(cleanLine(text, Infinity)), maxLength)
}

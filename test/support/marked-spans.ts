import type { Span } from '../../src/masking/secret-shapes.ts'

/** The text, any ⟦ and ⟧ in it taken off and set anew around what `find` finds. */
export function markSpans(find: (text: string) => readonly Span[], marked: string): string {
  const text = marked.replaceAll(/[⟦⟧]/gu, '')
  const found: Pick<Span, 'from' | 'to'>[] = []
  for (const { from, to } of find(text).toSorted(byPlace)) {
    const last = found.at(-1)
    if (last && from < last.to) last.to = Math.max(last.to, to)
    else found.push({ from, to })
  }
  return found.reduceRight(
    (rest, { from, to }) => `${rest.slice(0, from)}⟦${rest.slice(from, to)}⟧${rest.slice(to)}`,
    text,
  )
}

function byPlace(one: Span, other: Span): number {
  return one.from - other.from
}

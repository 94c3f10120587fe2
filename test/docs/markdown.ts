/** Tables in Markdown, and the parts of a page that a program writes. */

/** A table whose cells may hold any text but line breaks. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => plain(cell).replaceAll('|', String.raw`\|`)).join(' | ')} |`
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n')
}

/** Text in which a `<word>` outside of code is no HTML. */
export function plain(text: string): string {
  return text.replaceAll(/`[^`]*`|</g, (found) => (found === '<' ? String.raw`\<` : found))
}

export function code(text: string): string {
  return `\`${text}\``
}

export function codes(words: readonly string[]): string {
  return words.map(code).join(', ')
}

/** As a sentence: a capital letter in front, a full stop at the end. */
export function sentence(text: string): string {
  const capital = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?:]$/.test(capital) ? capital : `${capital}.`
}

/** Fenced blocks of one language, without the indent that a list gives them. */
export function fencedBlocks(page: string, language: string): string[] {
  const fences = page.matchAll(new RegExp(`^( *)\`\`\`${language}\\n(.*?)^ *\`\`\``, 'gms'))
  return [...fences].map(([, indent = '', block = '']) =>
    block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  )
}

/** What stands between `<!-- generated: name -->` and `<!-- end: name -->`. */
const generatedBlock = /<!-- generated: (.+?) -->\n.*?<!-- end: \1 -->/gs

export function blockNames(page: string): string[] {
  return [...page.matchAll(generatedBlock)].map(([, name = '']) => name)
}

/** The page with every generated part written anew; throws where a part has no text. */
export function withBlocks(page: string, blocks: ReadonlyMap<string, string>): string {
  return page.replaceAll(generatedBlock, (_part, name: string) => {
    const text = blocks.get(name)
    if (text === undefined) {
      throw new Error(
        `there is no generated part "${name}"; there are ${[...blocks.keys()].join(', ')}`,
      )
    }
    return `<!-- generated: ${name} -->\n\n${text}\n\n<!-- end: ${name} -->`
  })
}

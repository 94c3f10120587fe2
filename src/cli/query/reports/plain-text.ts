/** Markdown as plain text for a terminal: marks removed, long lines wrapped, nothing left out. */
import { widthOf } from '../../demo/terminal-width.ts'
import { harmless, table } from '../../words.ts'

interface Look {
  width: number
  strong: (text: string) => string
}

type Block =
  | { kind: 'heading' | 'paragraph'; text: string }
  | { kind: 'item'; text: string; mark: string }
  | { kind: 'table'; rows: string[][] }

export function plainText(markdown: string, look: Look): string[] {
  const blocks = blocksOf(markdown)
  return blocks.flatMap((block, at) => {
    const before = blocks[at - 1]
    const isApart = before !== undefined && !(before.kind === 'item' && block.kind === 'item')
    return [...(isApart ? [''] : []), ...linesOf(block, look)]
  })
}

function linesOf(block: Block, { width, strong }: Look): string[] {
  switch (block.kind) {
    case 'heading':
      return [strong(block.text)]
    case 'paragraph':
      return wrapped(block.text, width)
    case 'item':
      return wrapped(block.text, width, {
        first: block.mark,
        rest: ' '.repeat(widthOf(block.mark)),
      })
    case 'table':
      return table(block.rows)
  }
}

/** An empty line ends a block; so does whatever begins one of another kind. */
function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = []
  let isOpen = false
  for (const line of markdown.split(/\r\n?|\n/)) {
    const block = blockIn(line)
    const last = blocks.at(-1)
    if (block === undefined) isOpen = false
    else if (isOpen && last !== undefined && joins(last, block)) continue
    else {
      blocks.push(block)
      isOpen = true
    }
  }
  return blocks
}

/** Whether a line only goes on with the block before it, to which it is added. */
function joins(last: Block, block: Block): boolean {
  if (last.kind === 'table' && block.kind === 'table') {
    last.rows.push(...block.rows)
    return true
  }
  if (block.kind !== 'paragraph' || last.kind === 'table' || last.kind === 'heading') return false
  last.text += ` ${block.text}`
  return true
}

const heading = /^ {0,3}#{1,6}\s+(.*)$/
const item = /^(\s*)(?:[-*+•]|(\d{1,4}[.)]))\s+(.*)$/
const tableRule = /^\s*\|?[\s:|-]*-[\s:|-]*\|?\s*$/

function blockIn(line: string): Block | undefined {
  if (line.trim() === '') return undefined
  const [, title] = heading.exec(line) ?? []
  if (title !== undefined) return { kind: 'heading', text: inline(title) }
  const [, indent = '', number = '•', text] = item.exec(line) ?? []
  if (text !== undefined) {
    return {
      kind: 'item',
      text: inline(text),
      mark: `${' '.repeat(Math.min(indent.length, 8))}${number} `,
    }
  }
  if (line.trim().startsWith('|')) {
    return { kind: 'table', rows: tableRule.test(line) ? [] : [cellsOf(line)] }
  }
  return { kind: 'paragraph', text: inline(line) }
}

function cellsOf(line: string): string[] {
  return line.trim().replace(/^\|/, '').replace(/\|$/, '').split('|').map(inline)
}

function inline(text: string): string {
  const unmarked = text
    .replaceAll(/\[([^[\]]{1,500})\]\(([^()\s]{1,2000})\)/g, '$1 ($2)')
    .replaceAll(/\*\*([^*]{1,2000})\*\*/g, '$1')
    .replaceAll(/`([^`]{1,2000})`/g, '$1')
  return harmless(unmarked, Infinity)
}

/** Lines of at most `width` columns, unless one word is wider; `first` and `rest` stand before them. */
export function wrapped(
  text: string,
  width: number,
  { first, rest }: { first: string; rest: string } = { first: '', rest: '' },
): string[] {
  const lines: string[] = []
  let line = first
  let isEmpty = true
  for (const word of text.split(' ')) {
    if (!isEmpty && widthOf(line) + 1 + widthOf(word) > width) {
      lines.push(line)
      line = rest
      isEmpty = true
    }
    line += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return [...lines, line]
}

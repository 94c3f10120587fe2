/** A threat-flow report as text for a terminal: its Markdown, wrapped. */
import type { WireReport } from '../../upstream/resources/reports.ts'
import { parseTimestamp } from '../../upstream/timestamps.ts'
import { measureWidth, wrapText } from '../../lib/text-width.ts'
import { formatTable, formatUtcTime, sanitize } from '../terminal.ts'

/** Columns of a report's text. */
const width = 96

export function reportLines(report: WireReport, strong: (text: string) => string): string[] {
  const part = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : ['', strong(title), ...lines]
  return [
    strong(sanitize(report.title ?? `report ${report.id}`, Infinity)),
    ...(report.subtitle ? wrapText(sanitize(report.subtitle, Infinity), width) : []),
    ...wrapText(formatFacts(report), width),
    ...part('Summary', plainText(report.summary ?? '', { width, strong })),
    ...part(
      'Highlights',
      (report.highlights ?? []).flatMap((text) =>
        wrapText(sanitize(text, Infinity), width, { first: '• ', rest: '  ' }),
      ),
    ),
    ...part('Report', plainText(report.content ?? '', { width, strong })),
    ...part(
      'Related events',
      (report.related_activity_uids ?? []).map((uid) => `  ${sanitize(uid, Infinity)}`),
    ),
  ]
}

/** `report 9001, created 2026-11-01 12:00:05 UTC, 2 min to read, tags: leak`. */
function formatFacts(report: WireReport): string {
  const { reading_time: minutes, format_type: format, intel_type: intel, tags } = report
  return [
    `report ${report.id}`,
    ...formatTimestamps('created', report.created_at),
    ...formatTimestamps('published', report.published_at),
    ...formatTimestamps('updated', report.updated_at),
    ...(minutes === undefined || minutes === null ? [] : [`${minutes} min to read`]),
    ...[format, intel].filter((word) => typeof word === 'string').map((word) => sanitize(word)),
    ...(tags?.length ? [`tags: ${tags.map((tag) => sanitize(tag)).join(', ')}`] : []),
  ].join(', ')
}

function formatTimestamps(verb: string, text: string | null | undefined): string[] {
  if (typeof text !== 'string') return []
  const atMs = parseTimestamp(text)
  return [`${verb} ${atMs === null ? sanitize(text) : formatUtcTime(atMs)}`]
}

/**
 * Renders Markdown as plain text for a terminal: markup is removed, long lines are wrapped, no text
 * is lost.
 */

interface TextLayout {
  width: number
  strong: (text: string) => string
}

type Block =
  | { kind: 'heading' | 'paragraph'; text: string }
  | { kind: 'item'; text: string; mark: string }
  | { kind: 'table'; rows: string[][] }

export function plainText(markdown: string, layout: TextLayout): string[] {
  const blocks = parseBlocks(markdown)
  return blocks.flatMap((block, at) => {
    const before = blocks[at - 1]
    const isApart = before !== undefined && !(before.kind === 'item' && block.kind === 'item')
    return [...(isApart ? [''] : []), ...formatBlock(block, layout)]
  })
}

function formatBlock(block: Block, { width, strong }: TextLayout): string[] {
  switch (block.kind) {
    case 'heading':
      return [strong(block.text)]
    case 'paragraph':
      return wrapText(block.text, width)
    case 'item':
      return wrapText(block.text, width, {
        first: block.mark,
        rest: ' '.repeat(measureWidth(block.mark)),
      })
    case 'table':
      return formatTable(block.rows)
  }
}

/** A block ends at an empty line or where a block of another kind begins. */
function parseBlocks(markdown: string): Block[] {
  const blocks: Block[] = []
  let isOpen = false
  for (const line of markdown.split(/\r\n?|\n/)) {
    const block = parseBlock(line)
    const last = blocks.at(-1)
    if (block === undefined) isOpen = false
    else if (isOpen && last !== undefined && extendBlock(last, block)) continue
    else {
      blocks.push(block)
      isOpen = true
    }
  }
  return blocks
}

/** Appends a line's block to the previous one when it continues it; returns whether it did. */
function extendBlock(last: Block, block: Block): boolean {
  if (last.kind === 'table' && block.kind === 'table') {
    last.rows.push(...block.rows)
    return true
  }
  if (block.kind !== 'paragraph' || last.kind === 'table' || last.kind === 'heading') return false
  last.text += ` ${block.text}`
  return true
}

const headingPattern = /^ {0,3}#{1,6}\s+(.*)$/
const itemPattern = /^(\s*)(?:[-*+•]|(\d{1,4}[.)]))\s+(.*)$/
const tableRulePattern = /^\s*\|?[\s:|-]*-[\s:|-]*\|?\s*$/

function parseBlock(line: string): Block | undefined {
  if (line.trim() === '') return undefined
  const [, title] = headingPattern.exec(line) ?? []
  if (title !== undefined) return { kind: 'heading', text: plainInline(title) }
  const [, indent = '', number = '•', text] = itemPattern.exec(line) ?? []
  if (text !== undefined) {
    return {
      kind: 'item',
      text: plainInline(text),
      mark: `${' '.repeat(Math.min(indent.length, 8))}${number} `,
    }
  }
  if (line.trim().startsWith('|')) {
    return { kind: 'table', rows: tableRulePattern.test(line) ? [] : [parseCells(line)] }
  }
  return { kind: 'paragraph', text: plainInline(line) }
}

function parseCells(line: string): string[] {
  return line.trim().replace(/^\|/, '').replace(/\|$/, '').split('|').map(plainInline)
}

function plainInline(text: string): string {
  const unmarked = text
    .replaceAll(/\[([^[\]]{1,500})\]\(([^()\s]{1,2000})\)/g, '$1 ($2)')
    .replaceAll(/\*\*([^*]{1,2000})\*\*/g, '$1')
    .replaceAll(/`([^`]{1,2000})`/g, '$1')
  return sanitize(unmarked, Infinity)
}

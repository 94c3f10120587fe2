/** The live view as lines of text: a function of what is known and of the terminal's size. */
import { clockTime, type Arrival } from './demo-arrival.ts'
import type { DemoReading, FeedReading } from './demo-view.ts'
import type { Style } from '../terminal.ts'
import { cutToWidth } from './terminal-width.ts'
import { spanInWords, table } from '../words.ts'

export interface DemoFrame {
  reading: DemoReading
  introduction: readonly string[]
  /** Oldest first; the latest of each sink and as many as there is room for are shown. */
  arrivals: readonly Arrival[]
  columns: number
  rows: number
  paint: (style: Style, text: string) => string
}

/** With fewer rows the introduction gives way. */
const roomyRows = 22

/** At most `rows` lines, none wider than `columns`. */
export function frameOf(frame: DemoFrame): string[] {
  const { reading, introduction, arrivals, columns, rows, paint } = frame
  const line = (text: string, ...styles: Style[]): string =>
    styles.reduce((painted, style) => paint(style, painted), cutToWidth(text, columns))
  const [feedHead = '', ...feeds] = table([feedTitles, ...reading.feeds.map(feedCells)])
  const [sinkHead = '', ...sinks] = table([sinkTitles, ...sinkRows(frame)])
  const head = [
    line(`Tocsin demo: ${reading.stage}`, 'bold'),
    ...(rows < roomyRows ? [] : introduction.map((text) => line(text, 'dim'))),
    '',
    line(feedHead, 'dim'),
    ...feeds.map((text, index) => line(text, ...lagStyles(reading.feeds[index]))),
    '',
    line(sinkHead, 'dim'),
    ...sinks.map((text) => line(text)),
    '',
    line('WHAT ARRIVES WHERE', 'dim'),
  ].slice(0, rows)
  const room = rows - head.length
  const latest = room > 0 ? arrivals.slice(-room) : []
  return [...head, ...latest.map((one) => line(lineOf(one), ...severityStyles(one)))]
}

const feedTitles = ['FEED', 'LABELS', 'FETCHED', 'NEW', 'LATE', 'DUPLICATES', 'LAG', 'OBJECTIVE']
const sinkTitles = ['SINK', 'EVENTS', 'MESSAGES', 'COLLECTED', 'PENDING', 'LAST MESSAGE']

function feedCells(feed: FeedReading): string[] {
  return [
    feed.name,
    feed.labels,
    String(feed.fetched),
    String(feed.new),
    String(feed.late),
    String(feed.duplicate),
    feed.lagMs === undefined ? 'unread' : spanInWords(feed.lagMs),
    spanInWords(feed.lagObjectiveMs),
  ]
}

function sinkRows({ reading, arrivals }: DemoFrame): string[][] {
  return reading.sinks.map(({ name, ...counts }) => {
    const { arrived, messages, collected, pending } = counts
    const last = arrivals.findLast(({ sink }) => sink === name)
    return [name, ...[arrived, messages, collected, pending].map(String), last?.text ?? '-']
  })
}

function lineOf({ atMs, sink, text }: Arrival): string {
  return `${clockTime(atMs)} ${sink.padEnd(7)} ${text}`
}

function lagStyles(feed: FeedReading | undefined): Style[] {
  return feed?.lagMs !== undefined && feed.lagMs > feed.lagObjectiveMs ? ['red'] : []
}

function severityStyles({ severity }: Arrival): Style[] {
  switch (severity) {
    case 'critical':
      return ['red', 'bold']
    case 'high':
      return ['red']
    case 'medium':
      return ['yellow']
    default:
      return []
  }
}

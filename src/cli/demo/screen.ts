/**
 * The live view on a terminal. Every frame is one write that hides the cursor, overwrites in place
 * and shows the cursor again below: nothing flickers, and the terminal is intact whenever the
 * process ends.
 */
import { cutToWidth } from '../../lib/text-width.ts'
import { formatDuration, type Style, formatTable } from '../terminal.ts'
import {
  type Arrival,
  clockTime,
  type DemoReading,
  type DemoView,
  type FeedReading,
} from './evidence.ts'

export type ScreenStream = Pick<
  NodeJS.WriteStream,
  'write' | 'columns' | 'rows' | 'writableNeedDrain'
>

const csi = '\u001B['
/** Synchronized output: a terminal that supports it shows a frame at once; others ignore it. */
const beginFrame = `${csi}?2026h${csi}?25l${csi}H`
const endFrame = `${csi}J${csi}?25h${csi}?2026l`
const endLine = `${csi}K\r\n`
const eraseScreen = `${csi}2J`

/** More than the highest terminal shows. */
const keptArrivals = 500

export function createDemoScreen({
  stdout,
  paint,
}: {
  stdout: ScreenStream
  paint: DemoFrame['paint']
}): DemoView {
  const arrivals: Arrival[] = []
  let introduction: readonly string[] = []
  let drawnSize = ''

  function draw(reading: DemoReading): void {
    if (stdout.writableNeedDrain) return // a slow line gets the next frame
    const columns = stdout.columns || 80
    const rows = stdout.rows || 24
    const frame = { reading, introduction, arrivals, columns, paint }
    const lines = renderScreen({ ...frame, rows: rows - 1 }) // the last row is the cursor's
    stdout.write(
      `${prepareScreen(columns, rows)}${beginFrame}${lines.join(endLine)}${endLine}${endFrame}`,
    )
  }

  /**
   * The first frame scrolls away what the terminal showed before; after a resize the screen is
   * erased.
   */
  function prepareScreen(columns: number, rows: number): string {
    const size = `${columns}x${rows}`
    const isFirst = drawnSize === ''
    const isSame = drawnSize === size
    drawnSize = size
    if (isFirst) return '\n'.repeat(rows)
    return isSame ? '' : eraseScreen
  }

  return {
    introduce(lines) {
      introduction = lines
    },
    showArrival(arrival) {
      arrivals.push(arrival)
      if (arrivals.length > 2 * keptArrivals) arrivals.splice(0, arrivals.length - keptArrivals)
    },
    update: draw,
    end: () => void stdout.write('\n'),
  }
}

/** The data from which a frame is rendered. */

export interface DemoFrame {
  reading: DemoReading
  introduction: readonly string[]
  /** Oldest first; the view shows the latest of each sink and as many others as fit. */
  arrivals: readonly Arrival[]
  columns: number
  rows: number
  paint: (style: Style, text: string) => string
}

/** With fewer rows the introduction is left out. */
const roomyRows = 22

/** Renders at most `rows` lines of at most `columns` width. Pure. */
export function renderScreen(frame: DemoFrame): string[] {
  const { reading, introduction, arrivals, columns, rows, paint } = frame
  const line = (text: string, ...styles: Style[]): string =>
    styles.reduce((painted, style) => paint(style, painted), cutToWidth(text, columns))
  const [feedHead = '', ...feeds] = formatTable([feedTitles, ...reading.feeds.map(feedCells)])
  const [sinkHead = '', ...sinks] = formatTable([sinkTitles, ...sinkRows(frame)])
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
  return [...head, ...latest.map((one) => line(formatArrival(one), ...severityStyles(one)))]
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
    feed.lagMs === undefined ? 'unread' : formatDuration(feed.lagMs),
    formatDuration(feed.lagObjectiveMs),
  ]
}

function sinkRows({ reading, arrivals }: DemoFrame): string[][] {
  return reading.sinks.map(({ name, ...counts }) => {
    const { arrived, messages, collected, pending } = counts
    const last = arrivals.findLast(({ sink }) => sink === name)
    return [name, ...[arrived, messages, collected, pending].map(String), last?.text ?? '-']
  })
}

function formatArrival({ atMs, sink, text }: Arrival): string {
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

/**
 * The live view on a terminal. Every frame is one write that hides the cursor, overwrites in place and
 * shows the cursor again below: nothing flickers, and whenever the process ends the terminal is whole.
 */
import type { Arrival } from './demo-arrival.ts'
import { frameOf, type DemoFrame } from './demo-frame.ts'
import type { DemoReading, DemoView } from './demo-view.ts'

export type ScreenStream = Pick<
  NodeJS.WriteStream,
  'write' | 'columns' | 'rows' | 'writableNeedDrain'
>

const escape = '\u001B['
/** Synchronized output: a terminal that knows it shows the frame at once, others ignore it. */
const beginFrame = `${escape}?2026h${escape}?25l${escape}H`
const endFrame = `${escape}J${escape}?25h${escape}?2026l`
const endLine = `${escape}K\r\n`
const wipe = `${escape}2J`

/** More than the highest terminal shows. */
const keep = 500

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
    const lines = frameOf({ ...frame, rows: rows - 1 }) // the last row is the cursor's
    stdout.write(`${clear(columns, rows)}${beginFrame}${lines.join(endLine)}${endLine}${endFrame}`)
  }

  /** What stood on the terminal before scrolls away unharmed; what a resize mangled is wiped. */
  function clear(columns: number, rows: number): string {
    const size = `${columns}x${rows}`
    const isFirst = drawnSize === ''
    const isSame = drawnSize === size
    drawnSize = size
    if (isFirst) return '\n'.repeat(rows)
    return isSame ? '' : wipe
  }

  return {
    introduce(lines) {
      introduction = lines
    },
    arrived(arrival) {
      arrivals.push(arrival)
      if (arrivals.length > 2 * keep) arrivals.splice(0, arrivals.length - keep)
    },
    update: draw,
    end: () => void stdout.write('\n'),
  }
}

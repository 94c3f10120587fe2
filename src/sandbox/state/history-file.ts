/**
 * The history of the sandbox, a line of JSON for each thing that came or changed. A line is written
 * before anybody is shown what it says, and no line is ever written again: however long the file is,
 * an event costs one line.
 */
import {
  appendFileSync,
  closeSync,
  createReadStream,
  existsSync,
  openSync,
  truncateSync,
} from 'node:fs'
import { messageOf } from '../../runtime/errors.ts'
import { DataFolderError } from './data-folder-error.ts'
import {
  createTelling,
  parseHistoryLine,
  type HistoryLine,
  type ToldHistory,
} from './history-lines.ts'
import { replacePrivateFile } from '../../runtime/private-folder.ts'

export interface HistoryFile {
  /** What the file told when it was opened. */
  told: ToldHistory
  append(lines: readonly HistoryLine[]): void
  close(): void
}

const heading = JSON.stringify({ format: 'tocsin sandbox history', version: 1 })
/** So many lines at most are one text in memory. */
const linesAtOnce = 1000

export async function openHistoryFile(file: string): Promise<HistoryFile> {
  if (!existsSync(file)) replacePrivateFile(file, `${heading}\n`)
  const told = await readHistory(file)
  const descriptor = openSync(file, 'a')

  return {
    told,
    append(lines) {
      for (let start = 0; start < lines.length; start += linesAtOnce) {
        const some = lines.slice(start, start + linesAtOnce)
        appendFileSync(descriptor, some.map((line) => `${JSON.stringify(line)}\n`).join(''))
      }
    },
    close: () => closeSync(descriptor),
  }
}

/** What a crash cut off at the end was never shown: it is cut off for good. */
async function readHistory(file: string): Promise<ToldHistory> {
  const { told, take } = createTelling()
  let number = 0
  let bytes = 0
  let rest = ''
  for await (const chunk of createReadStream(file, { encoding: 'utf8' })) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      number += 1
      bytes += Buffer.byteLength(line) + 1
      if (number === 1) checkHeading(file, line)
      else takeLine(line, number)
    }
  }
  if (number === 0) throw new DataFolderError(file, 'no sandbox wrote it')
  if (rest !== '') truncateSync(file, bytes)
  return told

  function takeLine(line: string, at: number): void {
    try {
      take(parseHistoryLine(line))
    } catch (cause) {
      const why = cause instanceof Error && cause.name === 'Error' ? ` (${messageOf(cause)})` : ''
      throw new DataFolderError(file, `line ${at} is damaged${why}`, cause)
    }
  }
}

function checkHeading(file: string, line: string): void {
  if (line === heading) return
  const isOther = line.startsWith('{"format":"tocsin sandbox history"')
  throw new DataFolderError(file, isOther ? 'another version wrote it' : 'no sandbox wrote it')
}

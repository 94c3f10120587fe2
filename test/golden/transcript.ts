/**
 * What commands print, without what differs from run to run: standard output, then standard error, then
 * the exit code. JSON has as many values on a line as fit.
 */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { Ended } from '../integration/cli/tocsin.ts'
import { jsonLines } from './json-lines.ts'

/** Runs a command whose configuration is known. */
export type Run = (...args: string[]) => Promise<Ended>

export interface Masks {
  /** What stands in place of a text that differs. */
  texts?: readonly (readonly [text: string | RegExp, name: string])[]
  /** false: spans of time are constants of the configuration, and are shown. */
  spans?: boolean
}

export interface Session {
  /** Runs commands, one a line, each as it would be typed; `$name` is what `know` has said. Returns what they printed. */
  type: (commands: string, run?: Run) => Promise<string>
  /** A value that differs from run to run, such as an id; it has its name wherever it is printed. */
  know: (name: string, value: string) => void
}

export const transcriptFolder = join(import.meta.dirname, 'recorded/transcripts')

export function transcriptFile(group: string): string {
  return join(transcriptFolder, `${group}.txt`)
}

/** What `happen` types, and what is printed. */
export async function transcript(
  run: Run,
  happen: (session: Session) => Promise<unknown>,
  masks: Masks = {},
): Promise<string> {
  const known = new Map<string, string>()
  const told: (() => string)[] = []
  const all = { ...masks, texts: [...(masks.texts ?? [])] }
  await happen({
    know(name, value) {
      known.set(name, value)
      all.texts.push([value, `$${name}`])
    },
    async type(commands, other = run) {
      const printed: string[] = []
      for (const line of commands
        .trim()
        .split('\n')
        .map((one) => one.trim())) {
        if (line === '' || line.startsWith('#')) {
          told.push(() => `${line}\n`)
          continue
        }
        const args = wordsOf(line).map((word) =>
          word.replaceAll(/\$(\w+)/g, (_all, name: string) => known.get(name) ?? ''),
        )
        const ended = await other(...args)
        printed.push(ended.out)
        told.push(() => shown(line, args, ended, all))
      }
      return printed.join('')
    },
  })
  return told.map((tell) => tell()).join('\n')
}

/** As a shell splits it. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
    word.replaceAll(/'([^']*)'|"([^"]*)"/g, (_all, one = '', other = '') => `${one}${other}`),
  )
}

function shown(line: string, args: string[], { code, out, err }: Ended, masks: Masks): string {
  const isJson = args.join(' ').includes('--output json') && /^[[{]/.test(out)
  const hidden =
    masks.spans === false ? masked(out, masks) : masked(out, masks).replaceAll(spans, '<span>')
  // a refusal has spans that are examples, and those of less than a minute differ
  const refused = masked(err, masks).replaceAll(/\b\d+(\.\d+)? ?(ms|s)\b/g, '<span>')
  const said = [isJson ? compactJson(hidden) : hidden, refused].map(endedLine).join('')
  return `$ tocsin ${withoutTexts(line, masks)}\n${said}exit ${code}\n`
}

function endedLine(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`
}

/** A line a value where it fits: what a program reads needs no line a brace. */
function compactJson(text: string): string {
  return jsonLines(JSON.parse(text), { width: 120 })
}

const spans =
  /\b\d+(\.\d+)? ?(ms|s|min|h|d|days?|hours?|minutes?|seconds?)\b( \d+ ?(s|min|h|d)\b)*/g
/** Of items, records and messages. */
const ids = /\b[a-z]?(?:[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{24})\b( {2})?/g
/** But the one that no service knows. */
const uuids = /\b(?!00000000-)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g
/** Where a list goes on. */
const places = /\bWy[IJ][\w-]{40,}/g

/** Of the tests' files. */
const folders = new RegExp(String.raw`${tmpdir()}/tocsin-[\w-]+/`, 'g')

/** Without paths, and without what a test knows to differ. */
function withoutTexts(text: string, { texts = [] }: Masks): string {
  let said = stripVTControlCharacters(text).replaceAll(folders, '')
  for (const [one, name] of texts) {
    if (typeof one !== 'string') said = said.replaceAll(one, name)
    else
      said = said.replaceAll(one, (_all, at: number, whole: string) => {
        const isInColumn = whole.startsWith('  ', at + one.length)
        return isInColumn ? name.padEnd(one.length) : name
      })
  }
  return said
}

/** Times keep their form and names their width, so that columns stay where they are. */
function masked(text: string, masks: Masks): string {
  return withoutTexts(text, masks)
    .replaceAll(/\b(?:19|20)\d\d-\d\d-\d\d(?=\b|T)/g, 'YYYY-MM-DD')
    .replaceAll(/(?<=YYYY-MM-DD[T ])\d\d:\d\d|\b\d\d:\d\d(?=(:\d\d)? UTC)/g, 'hh:mm')
    .replaceAll(/(?<=hh:mm):\d\d/g, ':ss')
    .replaceAll(/(?<=:ss\.)\d{3,6}/g, (digits) => 's'.repeat(digits.length))
    .replaceAll(uuids, '<uuid>')
    .replaceAll(places, '<place>')
    .replaceAll(/\(\d+ bytes\)/g, '(<number> bytes)')
    .replaceAll(/(?<=(?:_progress|_seconds) +)[\d.]+/g, '<number>')
    .replaceAll(ids, (id, blanks) => (blanks ? '<id>'.padEnd(id.length) : '<id>'))
    .replaceAll(/\(\d[^()]* later\)/g, '(<span> later)')
    .replaceAll(/(?<=\bdue in )\d+ [^,]+/g, '<span>')
    .replaceAll(/"(\w*(?:seconds|_ms|Ms|_at|_bytes|_progress))": ?[\d.]+/g, '"$1": "<number>"')
}

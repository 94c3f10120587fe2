/**
 * The page's HTML from Liquid templates. Every value is cleaned and escaped where it is written,
 * and no filter undoes that. The tags and filters that exist are the two lists below.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type * as Library from 'liquidjs'
import { formatDuration } from '../../lib/time-zone.ts'
import { removeInvisible } from '../../messages/sanitize.ts'
import { plotColumns, plotLengths } from './plots.ts'
import type { ToldCount } from '../questions/told.ts'
import type { PageContext, View, ViewData } from './view-data.ts'

/** As templates of messages load it: imported as a module it would be there twice, 0.4 MB of text each. */
const { Liquid } = createRequire(import.meta.url)('liquidjs') as typeof Library

const folder = join(import.meta.dirname, '../views')

const tags = 'assign block comment for if layout render unless'.split(' ')
const filters = 'address append duration join known number prepend size slice url_encode'.split(' ')

export interface Renderer {
  /** Throws if the data lack what the view names. */
  render: <V extends View>(view: V, data: ViewData[V] & { page: PageContext }) => string
}

/** Reads all templates at once; a rendering reads no file. */
export function createRenderer(): Renderer {
  const engine = createEngine()
  return {
    render: (view, data) =>
      engine.renderFileSync(view, { ...data, ...plotsOf(view, data), severities }) as string,
  }
}

function createEngine(): Library.Liquid {
  const engine = new Liquid({
    templates: readTemplates(),
    relativeReference: false,
    cache: true,
    ownPropertyOnly: true,
    strictVariables: true,
    strictFilters: true,
    outputEscape: escapeValue,
  })
  engine.registerFilter('address', (url: unknown) => (leadsSomewhere.test(String(url)) ? url : '#'))
  engine.registerFilter('duration', (seconds: number) => formatDuration(seconds * 1000))
  // feeds bring words of their own, and none of them may choose a class
  engine.registerFilter('known', (word: unknown) =>
    severities.includes(String(word)) ? word : 'unknown',
  )
  engine.registerFilter('number', (count: number) => count.toLocaleString('en-US'))
  keepOnly(engine.tags, tags)
  keepOnly(engine.filters, filters)
  return engine
}

/** By name; without the indentation, which a browser does not need. */
function readTemplates(): Record<string, string> {
  const names = readdirSync(folder).filter((file) => file.endsWith('.liquid'))
  return Object.fromEntries(
    names.map((file) => [
      file.replace('.liquid', ''),
      readFileSync(join(folder, file), 'utf8')
        .replaceAll(/\s*\n\s*/g, '\n')
        .trim(),
    ]),
  )
}

function keepOnly(entries: Record<string, unknown>, names: readonly string[]): void {
  for (const name of Object.keys(entries)) if (!names.includes(name)) delete entries[name]
}

/** A path of this page, a query, or a web address: nothing that runs. */
const leadsSomewhere = /^(?:https?:\/\/|\/(?![/\\])|\?)/i

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
}

/** Fit for text and for quoted attributes. A list or an object is nothing that can be shown. */
function escapeValue(value: unknown): string {
  if (typeof value === 'number') return String(value)
  const text = typeof value === 'string' ? removeInvisible(value) : ''
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')
}

/** The worst first, and at the bottom of a column. */
const severities = ['critical', 'unknown', 'high', 'medium', 'low', 'info']

/** What a view draws beside its answer. */
function plotsOf(view: View, data: object): object {
  if (view === 'now') {
    const { hours, feeds } = data as ViewData['now']
    const shares = feeds.map(({ lag_s: lag, objective_s: most }) => (100 * (lag ?? 0)) / most)
    return {
      plot: plotColumns(hours.map(countsOf), severities),
      lags: shares.map((share) => Math.min(100, Math.round(share))),
    }
  }
  if (view !== 'told') return {}
  const told = data as ViewData['told']
  return {
    days: plotColumns(told.by_day.map(countsOf), ['told']),
    lengths: plotLengths(told.by_recipient.map((one: ToldCount) => one.told)),
    waits: plotLengths(told.delays.map((one) => one.p95_s ?? dayS)),
  }
}

/** Longer than this, no bound is known. */
const dayS = 86_400

function countsOf(row: object): Record<string, number> {
  return Object.fromEntries(
    Object.entries(row).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
  )
}

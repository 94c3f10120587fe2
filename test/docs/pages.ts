/** The pages of docs/, and what their generated parts must say. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { apiBlocks, openapiFile } from './api.ts'
import { alertBlocks } from './alerts.ts'
import { commandBlocks } from './commands.ts'
import { configurationBlocks } from './configuration.ts'
import { errorBlocks } from './errors.ts'
import { withBlocks } from './markdown.ts'
import { messageBlocks } from './messages.ts'
import { metricBlocks } from './metrics.ts'
import { operationBlocks } from './operations.ts'

export const root = join(import.meta.dirname, '../..')

interface StalePage {
  /** From the root of the repository. */
  path: string
  file: string
  fresh: string
}

/** Paths of all pages below docs/, from the root of the repository; sorted. */
export function docsPages(): string[] {
  const files = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => file.endsWith('.md'))
    .map((file) => join('docs', file))
    .toSorted()
}

/** README and the pages below docs/, by their paths: what describes this version. */
export function pagesOfThisVersion(): Map<string, string> {
  return new Map(['README.md', ...docsPages()].map((path) => [path, readPage(path)]))
}

export function readPage(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

/** Every generated part by its name. */
export async function generatedBlocks(): Promise<Map<string, string>> {
  return new Map([
    ...configurationBlocks(),
    ...(await commandBlocks()),
    ...metricBlocks(),
    ...alertBlocks(),
    ...errorBlocks(),
    ...messageBlocks(),
    ...operationBlocks(),
    ...apiBlocks(),
  ])
}

/** The chart's copy: a symbolic link would be missing from the npm package. */
const chartRules = 'deploy/helm/tocsin/rules.yaml'

export async function stalePages(): Promise<StalePage[]> {
  const blocks = await generatedBlocks()
  const fresh = docsPages().map((path) => [path, withBlocks(readPage(path), blocks)] as const)
  const { version } = JSON.parse(readPage('package.json')) as { version: string }
  const copies = [
    [chartRules, readPage('deploy/prometheus/rules.yaml')],
    ['docs/reference/openapi.json', openapiFile(version)],
  ] as const
  return [...fresh, ...copies]
    .filter(([path, text]) => readPage(path) !== text)
    .map(([path, text]) => ({ path, file: join(root, path), fresh: text }))
}

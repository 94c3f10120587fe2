/** An event as searches see it: what is stolen in a stealer log with it, what a tenant adds without. */
import { zoneless } from '../history/draft.ts'
import type { SandboxEvent } from '../history/sandbox-event.ts'
import { stolenOf } from '../history/stolen.ts'

export interface SearchDocument {
  /** Everything that is text, one piece a line. */
  text: string
  /** By dotted path, whole (`data.actor.name`), without `data` or `metadata`, and by its last name. */
  fields: Readonly<Record<string, readonly string[]>>
}

type Leaf = readonly [path: string, value: string | number | boolean]

export function documentOf(event: SandboxEvent): SearchDocument {
  const leaves = 'raw' in event ? leavesOf('', event.raw) : leavesOfEvent(event)
  let fields: SearchDocument['fields'] | undefined
  return {
    text: textsOf(event, leaves).join('\n'),
    get fields() {
      return (fields ??= fieldsOf(leaves))
    },
  }
}

function leavesOfEvent(event: SandboxEvent): Leaf[] {
  const metadata = {
    uid: event.uid,
    type: event.type,
    severity: event.severity,
    estimated_created_at: `${zoneless(event.createdAtMs)}Z`,
  }
  return leavesOf('', { metadata, data: { ...event.data, ...stolenOf(event) } })
}

function textsOf(event: SandboxEvent, leaves: readonly Leaf[]): string[] {
  const told = leaves.flatMap(([path, value]) =>
    typeof value === 'string' && !path.startsWith('metadata.') ? [value] : [],
  )
  if ('raw' in event) return told
  const shown = Object.values(event.highlights)
    .flat()
    .filter((text) => typeof text === 'string') // a test may put anything there
    .map((text) => text.replaceAll(/<\/?mark>/g, ''))
  return [...new Set([...shown, ...told, event.uid, ...event.identifiers.map(({ name }) => name)])]
}

function leavesOf(path: string, value: unknown, leaves: Leaf[] = []): Leaf[] {
  if (Array.isArray(value)) {
    for (const entry of value) leavesOf(path, entry, leaves)
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      leavesOf(path === '' ? key.toLowerCase() : `${path}.${key.toLowerCase()}`, inner, leaves)
    }
  } else if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    leaves.push([path, value])
  }
  return leaves
}

function fieldsOf(leaves: readonly Leaf[]): Record<string, string[]> {
  const fields = new Map<string, string[]>()
  for (const [path, value] of leaves) {
    for (const name of namesOf(path)) {
      const values = fields.get(name) ?? []
      fields.set(name, values)
      values.push(String(value))
    }
  }
  return Object.fromEntries(fields)
}

function namesOf(path: string): Set<string> {
  return new Set([path, path.replace(/^(?:data|metadata)\./, ''), path.split('.').at(-1) ?? path])
}

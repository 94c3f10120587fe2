/**
 * The shared metrics of one reading of Redis, and their text. They are no counters of this process, so
 * they are not prom-client's: a reading of a thousand accounts is written while it goes on, and shown whole.
 */
import type { MetricDefinition } from './metrics-kinds.ts'
import {
  labelSets,
  splitArguments,
  type KnownNames,
  type LooseArguments,
} from './metrics-registry.ts'
import { helpOf } from './metrics-table.ts'

export interface StateDraft {
  /** What the parts call, by name: `set` writes a sample, `inc` adds to it. */
  metrics: ReadonlyMap<string, object>
  /** Prometheus text format. */
  text(): string
}

export interface StateDraftOptions {
  isDetailed: boolean
  /** Every label set that they name begins with 0, unless the metric starts unset. */
  names: KnownNames
}

export function createStateDraft(
  table: ReadonlyMap<string, MetricDefinition>,
  { isDetailed, names }: StateDraftOptions,
): StateDraft {
  const shared = [...table].filter(([, { scope }]) => scope === 'shared')
  const samples = new Map(shared.map(([name, one]) => [name, startOf(one, names)]))

  function accessTo([name, { labels, brief }]: (typeof shared)[number]): [string, object] {
    const values = samples.get(name) ?? new Map<string, number>()
    const isSparse = brief === 'sparse' && !isDetailed
    const write = (given: LooseArguments, isAdded: boolean): void => {
      const [set, value] = splitArguments(given, labels)
      const text = labelText(set)
      const next = isAdded ? (values.get(text) ?? 0) + value : value
      if (next !== 0 || !isSparse) values.set(text, next)
    }
    return [
      name,
      {
        inc: (...given: LooseArguments) => write(given, true),
        set: (...given: LooseArguments) => write(given, false),
      },
    ]
  }

  return {
    metrics: new Map(shared.map(accessTo)),
    text: () => shared.map(([name, one]) => textOf(name, one, samples.get(name))).join(''),
  }
}

function startOf({ labels, startsUnset }: MetricDefinition, names: KnownNames): Samples {
  return new Map(startsUnset ? [] : labelSets(labels, names).map((set) => [labelText(set), 0]))
}

/** By the text of the labels. */
type Samples = Map<string, number>

function textOf(name: string, definition: MetricDefinition, samples: Samples = new Map()): string {
  const full = `tocsin_${name}`
  const lines = [`# HELP ${full} ${helpOf(definition)}`, `# TYPE ${full} ${definition.kind}`]
  for (const [labels, value] of samples) lines.push(`${full}${labels} ${value}`)
  return `${lines.join('\n')}\n`
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const texts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return texts.length === 0 ? '' : `{${texts.join(',')}}`
}

/** Names of the configuration need none; a sink's may come from the ledger. */
function escaped(value: string): string {
  return /["\\\n]/.test(value)
    ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
    : value
}

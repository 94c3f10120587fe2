/** Builds the sinks. */
import { createSink } from '../../sinks/create-sink.ts'
import type { SinkConfig } from '../../sinks/sink-types.ts'
import type { Sink } from '../../sinks/sink.ts'
import type { TemplateFailure } from '../../sinks/templates/template-config.ts'
import { templateRemedy } from '../../sinks/templates/templates.ts'
import type { ProcessContext } from '../context.ts'

type Parts = Pick<ProcessContext, 'logger' | 'clock'> & Partial<Pick<ProcessContext, 'metrics'>>

/** By name. */
export async function buildSinks(
  configs: readonly SinkConfig[],
  { logger, clock, metrics }: Parts,
): Promise<Map<string, Sink>> {
  const sinks = new Map<string, Sink>()
  const parts = {
    logger,
    clock,
    onTemplateFailure({ sink, template, problem }: TemplateFailure) {
      metrics?.templateFailuresTotal.inc({ sink, template })
      const about = { cause: `${sink} ${template}`, list: 'sinks', name: sink } as const
      const message = 'a template failed: the message has the built-in look'
      logger.repeated.warn({ sink, template, problem, remedy: templateRemedy }, message, about)
    },
  }
  for (const config of configs) {
    const sink = await createSink(config, parts)
    sinks.set(config.name, sink)
  }
  return sinks
}

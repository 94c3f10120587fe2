/** Builds the sinks, the encryption of leaked secrets and the hash of sink addresses. */
import { createSecretBox } from '../lib/sealed-secret.ts'
import { type SinkConfig, sinkTypeOf } from '../sinks/sink-types.ts'
import type { Sink } from '../sinks/sink.ts'
import { type TemplateFailure, templateRemedy } from '../sinks/templates.ts'
import type { EngineContext, ProcessContext } from './context.ts'

type Parts = Pick<ProcessContext, 'logger' | 'clock' | 'rehearsal'> &
  Partial<Pick<ProcessContext, 'metrics'>>

/** By name. */
export async function buildSinks(
  configs: readonly SinkConfig[],
  { rehearsal, logger, clock, metrics }: Parts,
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
    const sink = await sinkTypeOf(config).create(config, parts)
    sinks.set(config.name, rehearsal?.wrapSink(sink) ?? sink)
  }
  return sinks
}

/** Leaked secrets on their way through the ledger, encrypted under each account's own API key. */
export interface LeakedSecrets {
  /** undefined if no sink reveals secrets: then none is stored. */
  seal?: (account: string, uid: string, secret: string) => string | undefined
  /**
   * Returns undefined for a secret sealed under another key, for another account or another uid.
   */
  open: (account: string, uid: string, sealed: string) => string | undefined
  /** A digest of a pair of login and secret; undefined if the key cannot be read. */
  pairId: (account: string, parts: readonly string[]) => string | undefined
}

export function buildSecrets({
  config,
  logger,
}: Pick<EngineContext, 'config' | 'logger'>): LeakedSecrets {
  const boxes = new Map(
    config.accounts.map(({ name, apiKey }) => [name, createSecretBox(() => apiKey.reveal(), name)]),
  )
  const warned = new Set<string>()

  /** Warns once per account: credentials come by the thousand. */
  function withKey(account: string, action: () => string | undefined): string | undefined {
    try {
      return action()
    } catch {
      const message =
        'the API key cannot be read: leaked secrets go masked, and pairs are not recognised'
      if (!warned.has(account)) logger.warn({ account }, message)
      warned.add(account)
      return undefined
    }
  }

  return {
    ...(config.sinks.some(({ reveal }) => reveal) && {
      seal: (account, uid, secret) => withKey(account, () => boxes.get(account)?.seal(secret, uid)),
    }),
    open: (account, uid, sealed) => boxes.get(account)?.open(sealed, uid),
    pairId: (account, parts) => withKey(account, () => boxes.get(account)?.digest(parts)),
  }
}

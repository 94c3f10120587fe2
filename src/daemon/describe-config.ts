/** Writes what is configured to the metrics, and hashes the configuration for them. */
import type { ExpectedPolling } from '../config/warnings.ts'
import type { Config } from '../config/config.ts'
import type { FileContents } from '../config/file-contents.ts'
import type { Lanes } from '../feeds/lanes/lanes.ts'
import type { RouteConfig } from '../routing/config.ts'
import { createSecretBox } from '../lib/sealed-secret.ts'
import { isSecret } from '../lib/config/secret.ts'
import type { EngineContext } from './context.ts'

/** The parts that are described, as far as they exist yet. */
interface Described {
  context: Pick<EngineContext, 'config' | 'metrics'>
  files: FileContents
  upstream: { expectedPolling: (feed: string) => ExpectedPolling }
  parts?: { lanes: Pick<Lanes, 'feedPlace'> } | undefined
}

/** Writes to the metrics what is configured; every known label set starts at 0. */
export function describeConfig(
  { context, files, upstream, parts }: Described,
  version: string,
): void {
  const { config, metrics } = context
  const namesOf = (named: readonly { name: string }[]): string[] => named.map(({ name }) => name)
  metrics.startAtZero({
    feeds: namesOf(config.feeds),
    rescannedFeeds: namesOf(config.feeds.filter(({ rescan }) => rescan)),
    sinks: namesOf(config.sinks),
    canarySinks: config.canary?.sinks ?? [],
    accounts: namesOf(config.accounts),
    routes: routeNames(config.route),
  })
  metrics.buildInfo.set({ version }, 1)
  metrics.configHash.set(hashConfig({ config, files }))
  metrics.configLastReloadSuccessful.set(1)
  describePolling(context, upstream.expectedPolling, parts?.lanes)
  for (const { name, rescan } of config.feeds) {
    if (rescan?.everyMs !== undefined)
      metrics.feedRescanIntervalSeconds.set({ feed: name }, rescan.everyMs / 1000)
  }
  for (const sink of config.canary?.sinks ?? []) {
    metrics.canaryIntervalSeconds.set({ sink }, (config.canary?.everyMs ?? 0) / 1000)
  }
}

/**
 * Writes the poll interval of each feed: as the lanes of this process give it, else as expected
 * with the organizations known by now.
 */
export function describePolling(
  { config, metrics }: Pick<EngineContext, 'config' | 'metrics'>,
  expectedPolling: (feed: string) => ExpectedPolling,
  lanes?: Pick<Lanes, 'feedPlace'>,
): void {
  for (const { name: feed, account } of config.feeds) {
    const { intervalMs, lagObjectiveMs } = expectedPolling(feed)
    const givenMs = lanes?.feedPlace({ account, name: feed })?.intervalMs ?? intervalMs
    metrics.feedPollIntervalSeconds.set({ feed }, givenMs / 1000)
    metrics.feedLagObjectiveSeconds.set({ feed }, lagObjectiveMs / 1000)
  }
}

interface Said {
  config: Config
  files: FileContents
}

/**
 * 48 bits over everything that the configuration says, as a number; addresses, secrets and contents
 * of files included. The first account's API key is the key, so that nobody can test a guess at a
 * secret against it. 0: a secret cannot be read.
 */
export function hashConfig({ config, files }: Said): number {
  const box = createSecretBox(() => config.accounts[0]?.apiKey.reveal() ?? '')
  try {
    const text = JSON.stringify(config, function reveal(this: Record<string, unknown>, key, value) {
      const raw = this[key]
      return isSecret(raw) ? raw.reveal() : (value as unknown)
    })
    const digest = box.digest(['configuration', text, ...files.values()])
    return Number.parseInt(digest.slice(0, 12), 16)
  } catch {
    return 0
  }
}

function routeNames(route: RouteConfig): string[] {
  return [route.name, ...route.routes.flatMap(routeNames)]
}

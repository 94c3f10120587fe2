/** The reasons of every error with what to do, and what a failed send leads to. */
import type { AuditReason } from '../../src/operator/audit/audit-pages.ts'
import { sinkReasonWords } from '../../src/operator/item-words.ts'
import { adviceFor } from '../../src/operator/probes/sink-probes.ts'
import { type CommandError, formatDuration } from '../../src/cli/terminal.ts'
import { effectOn, type Failure, decideRetry } from '../../src/delivery/send/retry-policy.ts'
import type { HttpReason } from '../../src/page/http/server.ts'
import type { StoreReason } from '../../src/redis/health.ts'
import type { SinkReason } from '../../src/sinks/sink.ts'
import type { UpstreamReason } from '../../src/upstream/error.ts'
import { code, codes, sentence, table } from './markdown.ts'

/** Of the errors whose reasons have no advice in the program itself. A reason left out does not compile. */
const advice = {
  TOCSIN_COMMAND: {
    mistake: 'Change the arguments as the message says. Exit code 2.',
    refused: 'What was asked for is not there, or was declined. Exit code 1.',
  } satisfies Record<CommandError['reason'], string>,
  TOCSIN_HTTP: {
    port_in_use: 'Stop the other process, or set `http.port` to a free port.',
    port_forbidden: 'Set `http.port` to a port above 1023.',
    bad_host: 'Set `http.host` to an address of this machine, or to `0.0.0.0`.',
    other: "The message holds the system's code. Check `http.host` and `http.port`.",
  } satisfies Record<HttpReason, string>,
  TOCSIN_STORE: {
    unreachable:
      'Start Redis, or correct the `redis` key that the message names. With `embedded`, install redis-server, or read `redis.log` in its folder. The daemon waits by itself; a command gives up after 3 s.',
    refused:
      "Correct the user and the password, and [that user's rights](../install.md#redis). A replica takes no writes; a node of a Cluster needs `redis.cluster`. At the start the exit code is 1.",
    unsafe:
      'Set `appendonly yes` and `maxmemory-policy noeviction` in Redis, or accept the risk with `redis.allow_unsafe`. Exit code 2.',
    too_new:
      'A newer version wrote this ledger. Run that version, or give this one a `redis.prefix` of its own.',
    out_of_memory:
      'Raise `maxmemory` in Redis. Until then nothing new is taken in; outcomes are still written, and no cursor moves.',
  } satisfies Record<StoreReason, string>,
  TOCSIN_AUDIT: {
    quota: "The feed's `quota_reserve` is reached. Lower it, or audit next month.",
    endless:
      "The service's pages repeat without an end. Audit a shorter window with `--since`, and tell the service.",
  } satisfies Record<AuditReason, string>,
  TOCSIN_SERVICE: {
    auth: "401 after the token was renewed: replace the API key. 403: the key's user lacks a permission, or access to `tenant_id`. The account is tried again after 30 s, doubling to 15 min. A new key in `api_key_file` is used at the next try.",
    rate_limited:
      "429: another program uses the organization's limit. If it stays, lower `limits`.",
    rejected:
      'Another 4xx: check `base_url` and what the feed asks for (`identifier_group`, `filters`, `identifier`, `query`).',
    invalid:
      'The request was not sent, because it breaks a limit that the API states. The message names each field.',
    unavailable:
      "5xx, or the service cannot be reached: check the network, `proxy`, and the service's own status.",
    timeout: 'No answer within 30 s: check the firewall and the proxy; the service may be slow.',
    contract:
      'The answer is not what the API describes. Is `base_url` the address of the API, and not of its web application?',
  } satisfies Record<UpstreamReason, string>,
} as const

const reasonsOfSinks = Object.keys(sinkReasonWords) as SinkReason[]

export function errorBlocks(): [string, string][] {
  const head = ['Reason', 'What to do']
  const told = Object.entries<Record<string, string>>(advice).map(
    ([error, rows]): [string, string] => [
      `reasons of ${error}`,
      table(
        head,
        Object.entries(rows).map(([reason, text]) => [code(reason), text]),
      ),
    ],
  )
  const sinkRows = reasonsOfSinks.map((reason) => [
    code(reason),
    sentence(sinkReasonWords[reason]),
    adviceFor(reason),
  ])
  // reasons that lead to the same share a row
  const alike = Map.groupBy(reasonsOfSinks, (reason) => `${waitsOf(reason)}\n${effect(reason)}`)
  const retryRows = [...alike.values()].map(([first, ...more]) => [
    codes([first!, ...more]),
    waitsOf(first!),
    effect(first!),
  ])
  return [
    ...told,
    ['reasons of TOCSIN_SINK', table(['Reason', 'Means', 'What to do'], sinkRows)],
    ['retries', table(['Reasons', 'Next try', 'Circuit of the sink'], retryRows)],
  ]
}

/** What the retry table decides, try after try, until it repeats itself. */
function waitsOf(reason: SinkReason): string {
  const onSink = effectOn(reason)
  if (onSink === 'broken') return 'when the circuit lets a probe through'
  if (onSink === 'gone') return 'none while the sink is disabled'
  const first = verdictOf(reason, { tries: 0 })
  const alone = verdictOf(reason, { tries: 0, members: 1 })
  if (first === 'split') return `dead letter; a batch is halved until only the bad item is left`
  if (alone === 'dead') return 'none: dead letter'
  const waits: string[] = []
  for (let tries = 0; tries < 2 || waits.at(-1) !== waits.at(-2); tries += 1) {
    waits.push(verdictOf(reason, { tries }))
  }
  const last = waits.pop() ?? ''
  const started = [...new Set(waits)].join(', ')
  if (last === 'dead')
    return `after ${waits.filter((wait) => wait !== 'dead').join(', ')}; then dead letter`
  return started === last
    ? `after ${last}, again and again`
    : `after ${started}, then every ${last}`
}

function verdictOf(reason: SinkReason, about: Partial<Failure>): string {
  const usual = { tries: 0, ageMs: 0, retryAfterMs: undefined, members: 2, random: 0.5 }
  const others = { hasAcceptedOthers: false, newParts: 1, blindParts: 0 }
  const itself = { attempts: 0, mayBeMessages: false, isNewHalf: false }
  const verdict = decideRetry({ reason, ...usual, ...itself, ...others, ...about })
  return verdict.act === 'retry' ? formatDuration(verdict.afterMs) : verdict.act
}

function effect(reason: SinkReason): string {
  const words = {
    answered: 'closes: the sink answered',
    fault: 'opens after five in a row',
    broken: 'opens at once',
    gone: 'the sink is disabled until its address changes or an operator resumes it',
    none: 'no change',
  }
  return words[effectOn(reason)]
}

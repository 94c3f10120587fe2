/** The figures of a proof as the README shows them. */
import type { badInputs } from '../../../fuzz/bad-inputs.ts'
import type { SecretScan } from '../../../security/secret-scan.ts'
import { crash, outage } from '../disturbances/redis.ts'
import { kill } from '../disturbances/replicas.ts'
import type { Figures } from './run-chaos.ts'
import { isSteady, type SoakFigures } from './run-soak.ts'

export interface ProofFigures {
  chaos: Figures
  inputs: Awaited<ReturnType<typeof badInputs>>
  secrets: SecretScan
  soak: SoakFigures
  cores: number
}

/** Markdown. */
export function renderProof(figures: ProofFigures): string {
  const { chaos, inputs, secrets, soak, cores } = figures
  const { verdict, recoveryMs, struck } = chaos
  const times = (name: string): number => struck[name] ?? 0
  const strikes = Object.values(struck).reduce((sum, count) => sum + count, 0)
  const rows = [
    ['replicas killed (SIGKILL)', times(kill.name)],
    ['Redis killed (SIGKILL)', times(crash.name) + times(outage.name)],
    ['disturbances of all kinds', `${strikes}, of ${Object.keys(struck).length} kinds`],
    ['events, and deliveries due', `${number(chaos.events)}, ${number(verdict.expected)}`],
    ['**lost**', `**${verdict.lost.length}**`],
    ['repeated, and explained by a lost answer', `${verdict.repeated}, ${verdict.explained}`],
    ['**unexplained repeats**', `**${verdict.unexplained.length}**`],
    [
      'work of a killed replica in hand again',
      `after ${seconds(recoveryMs.median)} (median), ${seconds(recoveryMs.most)} (longest of ${recoveryMs.samples})`,
    ],
    [
      'bad inputs tried, crashes, unclear errors',
      `${inputs.tried}, ${inputs.crashed.length}, ${inputs.unclear.length}`,
    ],
    [
      'secrets planted, outputs searched, secrets found',
      `${secrets.planted}, ${number(secrets.outputs)} (${mebibytes(secrets.bytes)}), ${secrets.found.length}`,
    ],
    [
      `load held for ${Math.round(soak.seconds / 60)} min by one process`,
      `${soak.perSecond} events/s, ${number(soak.delivered)} delivered, at most ${seconds((1000 * soak.mostBehind) / soak.perSecond)} behind`,
    ],
    ['memory of the daemon meanwhile', span(soak.daemonBytes)],
    ['memory of Redis meanwhile (`max_bytes: 64MiB`)', span(soak.redisBytes)],
  ]
  return `${[
    `On ${cores} cores, ${chaos.replicas} replicas, ${chaos.seconds} s, seed ${chaos.seed}:`,
    '',
    '| | |',
    '|---|---|',
    ...rows.map(([what, value]) => `| ${what} | ${value} |`),
  ].join('\n')}\n`
}

export function complaintsOfProof({ chaos, inputs, secrets, soak }: ProofFigures): string[] {
  return [
    ...inputs.crashed.map((name) => `a bad input crashed the daemon: ${name}`),
    ...inputs.unclear.map((name) => `an unclear error: ${name}`),
    ...secrets.found.map((name) => `a secret came out: ${name}`),
    ...(isSteady(soak) ? [] : ['the load was not held, or memory grew']),
    ...(chaos.recoveryMs.most > mostRecoveryMs
      ? ['the work of a killed replica lay too long']
      : []),
  ]
}

/** Promised: ledger rules, Time-outs that hold together. */
const mostRecoveryMs = 15_000

function span([before, after]: readonly [number, number]): string {
  return `${mebibytes(before)} in the second fifth of the time, ${mebibytes(after)} in the last`
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function number(count: number): string {
  return count.toLocaleString('en')
}

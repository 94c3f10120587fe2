/** The figures of a proof as docs/testing.md shows them, in Markdown, and what is wrong with them. */
import { availableParallelism } from 'node:os'
import type { badInputs } from '../../fuzz/bad-inputs.ts'
import type { SecretScan } from '../../security/secret-scan.ts'
import { crash, outage } from '../disturbances/redis.ts'
import { kill } from '../disturbances/replicas.ts'
import { mebibytesInWords, secondsInWords, spreadInWords } from './in-words.ts'
import { complaintsOf, type Figures } from './run-chaos.ts'
import { promisedMs, type DelayFigures } from './run-delay.ts'
import { isSteady, type SoakFigures } from './run-soak.ts'

export interface AttackFigures {
  chaos: Figures
  inputs: Awaited<ReturnType<typeof badInputs>>
  secrets: SecretScan
}

type Row = readonly [what: string, value: string | number]

export function renderAttack({ chaos, inputs, secrets }: AttackFigures): string {
  const { verdict, recoveryMs, struck, ledgerChecks: proofs } = chaos
  const times = (name: string): number => struck[name] ?? 0
  const kinds = Object.keys(struck).length
  const strikes = Object.values(struck).reduce((sum, count) => sum + count, 0)
  return table(
    `Under attack: ${cores()}, ${chaos.replicas} replicas, ${chaos.seconds} s, seed ${chaos.seed}.`,
    [
      ['replicas killed (SIGKILL)', times(kill.name)],
      ['Redis killed (SIGKILL)', times(crash.name) + times(outage.name)],
      ['disturbances in all', `${number(strikes)}, of ${kinds} kinds`],
      ['events, deliveries due', `${number(chaos.events)}, ${number(verdict.expected)}`],
      ['**lost**', `**${verdict.lost.length}**`],
      ['repeated; of these explained by an answer that was lost', both(verdict)],
      ['**repeats without an explanation**', `**${verdict.unexplained.length}**`],
      ['work of a killed replica is free for others after', freeAfter(recoveryMs)],
      [
        'and taken up after; its sink may hang or be down then, others are killed meanwhile',
        spreadInWords(recoveryMs.taken),
      ],
      [
        'the ledger compared with itself meanwhile; findings',
        `${proofs.made}; ${proofs.findings.length}`,
      ],
      [
        'bad inputs tried; crashes; unclear errors',
        `${inputs.tried}; ${inputs.crashed.length}; ${inputs.unclear.length}`,
      ],
      [
        'secrets planted; outputs searched for them; found',
        `${secrets.planted}; ${number(secrets.outputs)} (${mebibytesInWords(secrets.bytes)}); ${secrets.found.length}`,
      ],
    ],
  )
}

export function renderKills(kills: Figures): string {
  const { verdict, recoveryMs, struck } = kills
  return table(
    `Kills and nothing else: ${cores()}, ${kills.replicas} replicas, ${kills.seconds} s, seed ${kills.seed}.`,
    [
      ['replicas killed (SIGKILL)', struck[kill.name] ?? 0],
      ['events, deliveries due', `${number(kills.events)}, ${number(verdict.expected)}`],
      ['lost; repeats without an explanation', unexcused(verdict)],
      ['work of a killed replica is free for others after', freeAfter(recoveryMs)],
      ['and taken up after', spreadInWords(recoveryMs.taken)],
    ],
  )
}

export function renderLoad(soak: SoakFigures): string {
  const { perSecond, delivered, mostBehind, daemonBytes, redisBytes } = soak
  return table(`Under load: ${cores()}, one process, ${soak.seconds} s, \`max_bytes: 64MiB\`.`, [
    ['load held', `${perSecond} events/s`],
    ['delivered, unaccounted for', `${number(delivered)}, ${soak.unaccounted}`],
    [
      'behind at most',
      `${secondsInWords((1000 * mostBehind) / perSecond)}, a poll coming every 5 s`,
    ],
    [
      'memory of the daemon, second and last fifth of the time',
      daemonBytes.map(mebibytesInWords).join(', '),
    ],
    ['memory of Redis, likewise', redisBytes.map(mebibytesInWords).join(', ')],
  ])
}

export function renderDelay({ lateMs, newMs, oldAlone, oldInSummaries }: DelayFigures): string {
  return table('How soon events are told, at one search a second, with the times that ship.', [
    ...Object.entries(lateMs).map(
      ([way, ms]) => [`an event that is late by 10 s, one feed, ${way}`, spreadOf(ms)] as const,
    ),
    [
      'a new critical event, each of 20 feeds being read again (5,000 events each)',
      spreadOf(newMs),
    ],
    ['old events told meanwhile in summaries; by themselves', `${oldInSummaries}; ${oldAlone}`],
  ])
}

function spreadOf(ms: readonly number[]): string {
  const sorted = ms.toSorted((a, b) => a - b)
  return spreadInWords({ median: sorted[sorted.length >> 1] ?? 0, most: sorted.at(-1) ?? 0 })
}

export function delayComplaints({ lateMs, newMs, oldAlone }: DelayFigures): string[] {
  const isLateKept = Object.values(lateMs)
    .flat()
    .every((ms) => ms <= promisedMs.late)
  return [
    ...(isLateKept ? [] : ['an event late by 10 s was told after more than six minutes']),
    ...(newMs.every((ms) => ms <= promisedMs.new) ? [] : ['a new event was told after 120 s']),
    ...(oldAlone === 0 ? [] : [`${oldAlone} old events were told by themselves`]),
  ]
}

export function attackComplaints({ chaos, inputs, secrets }: AttackFigures): string[] {
  return [
    ...complaintsOf(chaos),
    ...inputs.crashed.map((name) => `a bad input crashed the daemon: ${name}`),
    ...inputs.unclear.map((name) => `an unclear error: ${name}`),
    ...secrets.found.map((name) => `a secret came out: ${name}`),
  ]
}

export function loadComplaints(soak: SoakFigures): string[] {
  return isSteady(soak) ? [] : ['the load was not held, or memory grew']
}

function table(title: string, rows: readonly Row[]): string {
  const lines = rows.map(([what, value]) => `| ${what} | ${value} |`)
  return [title, '', '| | |', '|---|---|', ...lines, ''].join('\n')
}

function both({ repeated, explained }: Figures['verdict']): string {
  return `${repeated}; ${explained}`
}

function unexcused({ lost, unexplained }: Figures['verdict']): string {
  return `${lost.length}; ${unexplained.length}`
}

function freeAfter({ samples, free }: Figures['recoveryMs']): string {
  return `${spreadInWords(free)}; ${number(samples)} pieces`
}

function cores(): string {
  return `${availableParallelism()} cores`
}

function number(count: number): string {
  return count.toLocaleString('en')
}

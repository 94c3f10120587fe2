/** The table of SMTP as it is: who is at fault for what, and what becomes of it. */
import { expect, test } from 'vitest'
import { decideRetry, effectOn } from '../../src/delivery/retry-policy.ts'
import { judgeReply, reasonByBlame, type SmtpStage } from '../../src/sinks/email/smtp-blame.ts'
import type { SinkReason } from '../../src/sinks/sink.ts'
import { casesOn, type DialogueCase } from '../integration/sinks/email/smtp-dialogue-cases.ts'

function row(...cells: string[]): string {
  return `| ${cells.join(' | ')} |`
}

function table(head: string[], rows: string[][]): string {
  return [row(...head), row(...head.map(() => '---')), ...rows.map((cells) => row(...cells))].join(
    '\n',
  )
}

function itemAfter(reason: SinkReason): string {
  const { act } = decideRetry({
    reason,
    tries: 0,
    ageMs: 0,
    retryAfterMs: undefined,
    members: 1,
    attempts: 0,
    mayBeMessages: false,
    hasAcceptedOthers: false,
    isNewHalf: false,
    newParts: 1,
    blindParts: 0,
    random: 0.5,
  })
  return act === 'dead' ? 'dead letter' : 'waits'
}

function caseRow(
  { step, answer, outcome, isOwn, keeps, waitsS }: DialogueCase,
  on: string,
): string[] {
  const said = answer === 'hang' ? `nothing for ${waitsS} s` : answer
  const connection = keeps ? 'kept' : 'closed'
  if (outcome === 'delivered')
    return [step, said, on, outcome, '', 'told', '', 'closed, a fresh one']
  const item = itemAfter(outcome)
  const scope = isOwn ? 'this recipient' : 'the sink'
  return [step, said, on, outcome, scope, item, effectOn(outcome), connection]
}

test('each answer to each command has the outcome that it had', async () => {
  const fresh = casesOn('fresh')
  const reused = casesOn('reused')
  const isAmong = (all: DialogueCase[], { step, answer }: DialogueCase): boolean =>
    all.some((other) => other.step === step && other.answer === answer)
  const rows = [
    ...fresh.map((one) => caseRow(one, isAmong(reused, one) ? 'fresh, reused' : 'fresh')),
    ...reused.filter((one) => !isAmong(fresh, one)).map((one) => caseRow(one, 'reused')),
  ]
  const head = ['command', 'answer', 'connection', 'reason', 'of', 'item', 'circuit', 'afterwards']
  await expect(`${table(head, rows)}\n`).toMatchFileSnapshot('recorded/smtp-dialogue.md')
})

const ofExchange = [
  54, 57, 60, 64, 124, 133, 134, 135, 136, 139, 321, 501, 506, 508, 509, 511, 512, 513, 606, 703,
  705, 708, 750,
]

/** RFC 3463 and the IANA registry, then those of Exchange. */
const details: Record<string, number[]> = {
  0: [0],
  1: [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 20, 90],
  2: [0, 1, 2, 3, 4, 121, 122, 252],
  3: [0, 1, 2, 3, 4, 5, 190],
  4: [0, 1, 2, 3, 4, 5, 6, 7, 11, 14, 300, 310, 312, 316],
  5: [0, 1, 2, 3, 4, 5, 6],
  6: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11],
  7: [...Array.from({ length: 31 }, (_, detail) => detail), ...ofExchange],
}

test('each enhanced status code is read at each stage as it was', async () => {
  const stages: SmtpStage[] = ['greeting', 'auth', 'mail', 'rcpt', 'data', 'message']
  const reasonsOf = (reply: string): string[] =>
    stages.map((stage) => {
      const verdict = judgeReply(stage, `${reply} said`)
      if (verdict === undefined) return ''
      return `${reasonByBlame[verdict.blame]}${verdict.scope === undefined ? '' : ' (own)'}`
    })
  const bare = ['421', '450', '451', '452', '500', '501', '503', '504', '521', '530', '535', '550']
  const codes = Object.entries(details).flatMap(([subject, all]) =>
    all.flatMap((detail) => [`450 4.${subject}.${detail}`, `550 5.${subject}.${detail}`]),
  )
  const all = [...bare, '551', '552', '553', '554', '556', ...codes.toSorted(byClass)]
  const rows = all.map((reply) => [reply, ...reasonsOf(reply)])
  const head = ['reply', ...stages]
  await expect(`${table(head, rows)}\n`).toMatchFileSnapshot('recorded/smtp-codes.md')
})

function byClass(one: string, other: string): number {
  return Number(one[0]) - Number(other[0])
}

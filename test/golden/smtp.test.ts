/** The table of SMTP as it is: who is at fault for what. */
import { expect, test } from 'vitest'
import { judgeReply, reasonByBlame, type SmtpStage } from '../../src/sinks/email/smtp-blame.ts'

function row(...cells: string[]): string {
  return `| ${cells.join(' | ')} |`
}

function table(head: string[], rows: string[][]): string {
  return [row(...head), row(...head.map(() => '---')), ...rows.map((cells) => row(...cells))].join(
    '\n',
  )
}

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

/** What a mail server, or whatever listens in its place, may say at each step of handing a mail in. */
import type { BadInput } from './bad-input.ts'

/** Step by step; of each what is said. What is left out is said as it should be. */
export type MailDialogue = Partial<Record<MailStep, Buffer>>
export type MailStep = 'greeting' | 'EHLO' | 'MAIL' | 'RCPT' | 'DATA' | 'end'

export const properReplies: Record<MailStep, Buffer> = {
  greeting: Buffer.from('220 mail.example ESMTP\r\n'),
  EHLO: Buffer.from('250-mail.example\r\n250 8BITMIME\r\n'),
  MAIL: Buffer.from('250 2.1.0 ok\r\n'),
  RCPT: Buffer.from('250 2.1.5 ok\r\n'),
  DATA: Buffer.from('354 go on\r\n'),
  end: Buffer.from('250 2.0.0 queued\r\n'),
}

const steps: MailStep[] = ['greeting', 'EHLO', 'MAIL', 'RCPT', 'DATA', 'end']

const replies: Record<string, string | Buffer> = {
  'a word': 'banana\r\n',
  'a number of one digit': '2\r\n',
  'a number that there is not': '999 what\r\n',
  HTTP: 'HTTP/1.1 400 Bad Request\r\n\r\n',
  'zero bytes': Buffer.from('250 \u0000\u0000\r\n'),
  'bytes that are no UTF-8': Buffer.from([0x35, 0x35, 0x30, 0x20, 0xff, 0xfe, 0x0d, 0x0a]),
  'a refusal with escapes': '550 5.7.1 \u001B[2J\u0007\u202Eno\r\n',
}

/** One for each step and reply; the connection ends after it. */
export function badMailAnswers(): BadInput<MailDialogue>[] {
  return steps.flatMap((step) =>
    Object.entries(replies).map(([name, reply]) => ({
      name: `a mail server: ${name} at ${step}`,
      content: { [step]: Buffer.from(reply) },
    })),
  )
}

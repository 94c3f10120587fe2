import type { Received } from '../../../src/sandbox/receivers/received.ts'
import { recipientHash } from '../../../src/sinks/destinations.ts'
import type { Inbox } from './accountant.ts'
import type { Stage } from './stage.ts'

/** Every destination of the stage's configuration, with what arrived there. */
export function inboxesOf({ sandbox }: Pick<Stage, 'sandbox'>): Inbox[] {
  const { webhook, slack, email } = sandbox.received
  const hook = (name: string): Inbox => ({
    destination: name,
    received: webhook.filter(({ to }) => to === `/hooks/${name}`),
    saysRepeat: byHeader,
  })
  const mail = (sink: string, address: string): Inbox => ({
    destination: `${sink}:${recipientHash(address)}`,
    received: email.filter(({ to }) => to === address),
    saysRepeat: byHeader,
  })
  return [
    hook('single'),
    hook('batch'),
    {
      destination: 'soc',
      received: slack,
      saysRepeat: ({ body }) => /may be a repeat/i.test(body),
    },
    mail('oncall', 'a@example.com'),
    mail('oncall', 'b@example.com'),
    { ...mail('team', 'team@example.com'), isSummary: true },
  ]
}

function byHeader({ headers }: Received): boolean {
  return headers['tocsin-possible-repeat'] === 'true'
}

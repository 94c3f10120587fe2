import { Command } from 'commander'
import { maskDetail } from '../../../feeds/masking.ts'
import { refang } from '../../../messages/defang.ts'
import type { EventAnswer } from '../../../service/operations/event-answer.ts'
import { createServiceLink } from '../../../service/service-links.ts'
import { CommandError } from '../../command-error.ts'
import { print, type Context } from '../../context.ts'
import { harmless } from '../../words.ts'
import { eventCard } from './events-card.ts'
import { nameFailure } from '../name-failure.ts'
import { textValue } from '../option-values.ts'
import { addRevealOption, masked, type RevealOption } from '../reveal.ts'
import { addServiceOptions, withClient, type ServiceOptions } from '../service-command.ts'

interface EventsGetOptions extends ServiceOptions, RevealOption {
  output: 'text' | 'json'
}

export function eventsGetCommand(context: Context): Command {
  const command = new Command('get')
    .description('one event in full')
    .argument('<uid>', 'of the event; as it stands in a message will do', uidValue)
  return addServiceOptions(addRevealOption(command), ['text', 'json']).action(
    (uid: string, options: EventsGetOptions) => getEvent(context, uid, options),
  )
}

export function uidValue(text: string): string {
  return refang(textValue(text))
}

async function getEvent(context: Context, uid: string, options: EventsGetOptions): Promise<void> {
  const { answer, serviceLink } = await withClient(
    context,
    options,
    async ({ config, account, client, asked }) => ({
      answer: await nameFailure(harmless(uid), client.getEvent({ uid, ...asked() })),
      serviceLink: (url: string | null) => createServiceLink(config.accounts)(account, url),
    }),
  )
  if (answer.kind === 'none') throw nothingOf(uid, answer.why)
  const { event } = answer
  const data = options.reveal ? answer.data : maskDetail(answer.data, uid)
  const metadata = { ...(options.reveal ? event.metadata : masked(event.metadata)), uid }
  const shown = { ...event, metadata, data }
  print(context, options, {
    json: shown,
    lines: () =>
      eventCard(context.terminal, {
        ...shown,
        maskedData: maskDetail(answer.data, uid),
        serviceLink,
      }),
  })
}

type Why = Extract<EventAnswer, { kind: 'none' }>['why']

const reasons: Record<Why, string> = {
  unsupported: 'there is no full event of this type; the search item is all there is',
  not_found: 'the service knows no event of this uid; copy the uid whole',
  empty: 'the full event is empty; the search item is all there is',
  mismatch: 'the service answers with another event; the search item is all there is',
}

function nothingOf(uid: string, why: Why): CommandError {
  return new CommandError('refused', `${harmless(uid)}: ${reasons[why]}`)
}

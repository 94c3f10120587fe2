/** The file's `messages`: next steps and runbooks by event type. */
import { z } from 'zod'
import { guidanceText, section, wrongKind } from '../lib/config/config-fields.ts'
import { pageAddress } from '../lib/config/web-address.ts'

function byType(value: z.ZodType<string>, describe: string): z.ZodType<Record<string, string>> {
  return z
    .record(z.string(), value, wrongKind('a section by event type', 'write types and their values'))
    .meta({ description: describe })
}

export const messagesConfig = section(
  {
    next_steps: byType(
      guidanceText("What to do about an event of this type; '' removes the built-in line."),
      'Replaces the next step in messages, by event type.',
    ).prefault({}),
    runbook_urls: byType(
      pageAddress('A page about what to do, http or https.'),
      'A runbook by event type, beside those of routes.',
    ).prefault({}),
  },
  { describe: 'What messages say of what to do.' },
).transform((file) => ({ nextSteps: file.next_steps, runbookUrls: file.runbook_urls }))

export type MessagesConfig = z.output<typeof messagesConfig>

/** The configuration of a Microsoft Teams sink. */
import { z } from 'zod'
import { rate, section } from '../../lib/config/config-fields.ts'
import { outboundRules } from '../../lib/config/outbound-config.ts'
import { secretKeys, secretRule } from '../../lib/config/secret.ts'
import { sectionAddressProblem } from '../../lib/config/web-address.ts'
import { chatKeys, type NamedSink, readChat, type SinkSettings, type SinkType } from '../config.ts'
import { knownAddressProblem } from '../known-addresses.ts'

/** One Teams sink of the file; its key is its name. */
const teamsConfig = section(
  {
    type: z.literal('teams').meta({
      description: 'A chat or channel of Microsoft Teams, by the webhook of a workflow.',
    }),
    ...secretKeys('url', 'Address of the webhook, as the workflow shows it, with its signature.'),
    // At most 4 in one second and 60 in thirty (docs/api-notes.md, Microsoft Teams).
    limit: rate('Messages per second or minute, over all replicas.').prefault('2/s'),
    ...chatKeys,
  },
  {
    describe: 'Messages to a chat or channel of Microsoft Teams.',
    rules: [
      secretRule('url', {
        required: true,
        check: (url, sink) => sectionAddressProblem(url, sink) ?? knownAddressProblem('teams', url),
      }),
      ...outboundRules,
    ],
  },
).transform((file) => readChat(file))

/** `sig=` of the address lets anybody post, so all of it is secret. */
export type TeamsConfig = SinkSettings<typeof teamsConfig>

export const teamsType = {
  config: teamsConfig,
  audience: 'people',
  address({ url }) {
    return url
  },
  warn({ url }) {
    if (!lacksSignature(url.reveal())) return []
    const remedy = 'let Anyone trigger the workflow, save it, and copy its URL again'
    return [{ key: 'url', problem: 'has no signature (sig=), so the workflow refuses it', remedy }]
  },
} satisfies SinkType<NamedSink<typeof teamsConfig>>

/** Whether the workflow's trigger asks for a sign-in instead of the signature in the address. */
function lacksSignature(input: string): boolean {
  const url = URL.parse(input)
  if (url === null || url.searchParams.has('sig')) return false
  return /\.(?:logic\.azure|api\.powerplatform)\.com$/u.test(url.hostname)
}

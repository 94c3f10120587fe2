/** Acts on silences: made for a while, and ended. */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { severities } from '../../event.ts'
import { duration } from '../../lib/config/config-fields.ts'
import { formatUtcTime } from '../../lib/time-zone.ts'
import { formatList } from '../../lib/errors.ts'
import {
  endSilence,
  readAllSilences,
  sinksBySilence,
  storeSilence,
} from '../../operator/silences.ts'
import { isSilenceProblem, maxSilenceMs, newSilence, type Silence } from '../../routing/silences.ts'
import { seesAccount } from '../access/user.ts'
import { act, type Actor } from '../act.ts'
import { isRestricted } from '../asker.ts'
import { PageError } from '../page-error.ts'
import { concernsOnly, visibleSilences } from '../questions/silences.ts'
import { silenceUrl } from '../output/urls.ts'

export const silenceInput = z.object({
  matchers: z
    .union([z.array(z.string()), z.string().transform((text) => text.split(/\r?\n/))])
    .transform((lines) => lines.map((line) => line.trim()).filter((line) => line !== ''))
    .describe('All must match, such as type="paste".'),
  for: z.string().trim().default('2h').describe('How long, such as 2h; at most 30d.'),
  reason: z.string('say why').trim().describe('Why.'),
  severity: z
    .enum(severities, `one of ${severities.join(', ')}`)
    .describe('Nothing more severe is silenced.'),
  machines: z
    .union([z.boolean(), z.literal('yes').transform(() => true)])
    .default(false)
    .describe('Silence webhooks too, which get every event otherwise.'),
})

export const addSilence = act({
  path: '/silences',
  summary: 'send people nothing of what matches, from now on for a while',
  input: silenceInput,
  async perform(actor, input) {
    const silence = buildSilence(actor, input)
    await storeSilence(actor.store, silence)
    const begins = `Silence ${silence.id} begins within seconds and ends ${formatUtcTime(silence.endsAtMs)}.`
    const made = { done: true, url: silenceUrl(silence.id) }
    if (isRestricted(actor)) return { ...made, said: [begins] } // sinks bear names of others
    const { silent, goes_on: others } = sinksBySilence(actor.config, silence)
    return {
      ...made,
      said: [
        begins,
        silent.length === 0 ? 'No sink falls silent.' : `Silent: ${formatList(silent)}.`,
        ...(others.length === 0 ? [] : [`Machines get it all the same: ${formatList(others)}.`]),
      ],
    }
  },
})

/** Of the feeds that the user sees. */
export function knownLabels({ config, user }: Pick<Actor, 'config' | 'user'>): string[] {
  return config.feeds
    .filter(({ account }) => seesAccount(user, account))
    .flatMap(({ labels }) => Object.keys(labels))
}

/** Throws PageError with each mistake. */
export function buildSilence(
  { config, user, nowMs }: Pick<Actor, 'config' | 'user' | 'nowMs'>,
  { for: span, ...input }: z.output<typeof silenceInput>,
): Silence {
  const forMs = duration('How long.').safeParse(span)
  if (!forMs.success) {
    throw new PageError('bad_request', 'for: not a duration', 'write one such as 2h or 7d')
  }
  if (forMs.data > maxSilenceMs) {
    throw new PageError('bad_request', 'for: more than 30 days', 'renew it while it is needed')
  }
  const silence = newSilence({
    ...input,
    id: `s${randomBytes(4).toString('hex')}`,
    labels: knownLabels({ config, user }), // a mistake names those that are alike
    forMs: forMs.data,
    owner: user.name,
    nowMs,
  })
  if (isSilenceProblem(silence)) {
    const [first, ...others] = silence.mistakes.map(
      ({ place, problem, remedy }) => `${place}: ${problem}; ${remedy}`,
    )
    throw new PageError('bad_request', first ?? '', others.join('. ') || undefined)
  }
  if (concernsOnly(silence, user)) return silence
  const remedy = `add a matcher such as account="${user.accounts[0] ?? ''}"`
  throw new PageError('forbidden', 'the silence would concern accounts of others', remedy)
}

export const expireSilence = act({
  path: '/silences/:id/expire',
  summary: 'end a silence that was made by command or on the page',
  input: z.object({ id: z.string().describe('As lists show it.') }),
  async perform({ store, config, user }, { id }) {
    const { silences } = await readAllSilences(store, config)
    const silence = visibleSilences(silences, user).find((one) => one.id === id)
    if (!silence) throw new PageError('not_found', 'no such silence is visible to you')
    if (silence.origin === 'config') {
      const remedy = 'remove it there, then reload'
      throw new PageError('conflict', 'this silence stands in the configuration', remedy)
    }
    const hasEnded = await endSilence(store, silence)
    const said = hasEnded ? `${id} ends within seconds.` : `${id} was over.`
    return { done: hasEnded, said: [said], url: silenceUrl(id) }
  },
})

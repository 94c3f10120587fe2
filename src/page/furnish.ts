/** Adds to the answer of a question the forms and links of its view. */
import { redisNow } from '../redis/scripts.ts'
import type { Asker } from './asker.ts'
import { silenceInput, buildSilence } from './acts/silences.ts'
import { asked, type Forms, hidden } from './forms.ts'
import { PageError } from './page-error.ts'
import type { EventAnswer } from './questions/event.ts'
import type { MessageAnswer } from './questions/message.ts'
import type { NotToldAnswer } from './questions/not-told.ts'
import { previewSilence } from './questions/preview.ts'
import type { RulesAnswer } from './questions/rules.ts'
import { addressOf } from './urls.ts'
import type { StatusAnswer } from './questions/state.ts'
import type { Act, EventData, MessageData, NotToldData, NowData, RulesData } from './view-data.ts'

type Shown = Omit<NowData['findings'][number], 'url' | 'acts'>

export function furnishNow(answer: StatusAnswer, asker: Asker, forms: Forms): NowData {
  return {
    ...answer,
    findings: answer.findings.map(({ since, stops, status, ...one }) => {
      const shown: Shown = {
        ...one,
        remedy: one.remedy ?? '',
        since: since ?? null,
        stops: stops ?? false,
        status: status === 'problem' ? 'problem' : 'warning',
      }
      const url = moreOf(shown)
      const remedy = url === null ? shown.remedy : onThePage
      return { ...shown, remedy, url, acts: forms.mayAct ? actsOf(shown, asker, forms) : [] }
    }),
    pauses: pausesOf('feeds', answer.feeds, forms),
  } as NowData
}

function pausesOf(what: string, named: readonly { name: string }[], forms: Forms): Act[] {
  if (!forms.mayAct) return []
  return named.map(({ name }) => forms.act(`/${what}/${encodeURIComponent(name)}/pause`, name))
}

/** In place of a command. */
const onThePage = 'see what was answered, mend it, then send them again or give them up.'

function moreOf({ check, subject, detail }: Shown): string | null {
  if (detail.includes('dead letter')) {
    const whose = check === 'account' ? { account: subject } : { sink: subject }
    return addressOf('/not-told', { state: 'dead', since: '30d', ...whose })
  }
  if (!detail.includes('quarantine')) return null
  return addressOf('/not-told', { state: 'quarantined' })
}

function actsOf({ check, subject, stops, detail }: Shown, { user }: Asker, forms: Forms): Act[] {
  const path = encodeURIComponent(subject)
  if (check === 'feed' && stops) return [forms.act(`/feeds/${path}/resume`, 'Resume')]
  if (check !== 'delivery' || user.accounts !== 'all') return []
  const confirm = `Sends one message marked TEST to each recipient of ${subject}.`
  return [
    forms.act(`/sinks/${path}/test`, 'Test', { confirm }),
    ...(stops ? [forms.act(`/sinks/${path}/resume`, 'Resume')] : []),
    ...(detail.includes('digest') ? [forms.act(`/sinks/${path}/flush`, 'Send digest now')] : []),
  ]
}

export function furnishMessage(
  { items, ...answer }: MessageAnswer,
  _asker: Asker,
  forms: Forms,
): MessageData {
  const fields = items.map((item) => hidden('item', item))
  const confirm = 'Every recipient of it gets it again, under the same ids.'
  const isOver = answer.outcome === 'dead' || answer.outcome === 'delivered'
  const label = answer.total > items.length ? `Send these ${items.length} again` : 'Send again'
  const acts =
    forms.mayAct && isOver ? [forms.act('/items/resend', label, { confirm, fields })] : []
  return { ...answer, acts }
}

export function furnishEvent(answer: EventAnswer, _asker: Asker, forms: Forms): EventData {
  return { ...answer, acts: forms.mayAct ? eventActs(answer, forms) : [] }
}

const resendable = new Set(['dead', 'delivered', 'discarded'])

function eventActs({ account, id, destinations, kind, closed }: EventAnswer, forms: Forms): Act[] {
  const items = destinations.filter(({ state }) => resendable.has(state)).map(({ item }) => item)
  const place = `/events/${encodeURIComponent(account)}/${id}`
  const triage = (action: string, label: string): Act => {
    const confirm = `The service is asked to ${action} this event, with the key of ${account}.`
    return forms.act(`${place}/triage`, label, { confirm, fields: [hidden('action', action)] })
  }
  const resend = {
    confirm: 'Every recipient that it was sent to gets it again, under the same ids.',
    fields: items.map((item) => hidden('item', item)),
  }
  return [
    ...(items.length > 0 ? [forms.act('/items/resend', 'Send again', resend)] : []),
    ...(kind === 'event'
      ? [
          closed === 'ignored'
            ? triage('unignore', 'No longer ignore')
            : triage('ignore', 'Ignore'),
          closed === 'remediated'
            ? triage('unremediate', 'Not remediated')
            : triage('remediate', 'Remediated'),
          forms.act(`${place}/note`, 'Note', {
            confirm: 'Replaces the note that the service keeps of this event.',
            fields: [asked('note', 'Note')],
          }),
        ]
      : []),
  ]
}

export function furnishNotTold(answer: NotToldAnswer, _asker: Asker, forms: Forms): NotToldData {
  const can = (act: string): boolean =>
    forms.mayAct && answer.items.some(({ acts }) => acts.includes(act))
  return {
    ...answer,
    acts: {
      replay: can('resend') ? forms.act('/items/resend', 'Send again') : null,
      discard: can('discard') ? forms.act('/items/discard', 'Give up') : null,
    },
  }
}

/** The form is filled with what the address says, and shows what it would have hidden. */
export async function furnishRules(
  answer: RulesAnswer,
  asker: Asker,
  { forms, query }: { forms: Forms; query: Readonly<Record<string, unknown>> },
): Promise<RulesData> {
  const silences = answer.silences.map((silence) => ({
    ...silence,
    acts:
      forms.mayAct && silence.origin === 'command' && silence.phase !== 'over'
        ? [forms.act(`/silences/${silence.id}/expire`, 'End now')]
        : [],
  }))
  const pauses = asker.user.accounts === 'all' ? pausesOf('sinks', asker.config.sinks, forms) : []
  if (!forms.mayAct) return { ...answer, silences, pauses, silence_form: null, preview: null }
  const matchers = [query['matchers'] ?? []].flat().map(String)
  const text = (name: string, otherwise: string): string =>
    typeof query[name] === 'string' ? query[name] : otherwise
  const fields = [
    ...[0, 1, 2].map((at) => asked('matchers', `Matcher ${at + 1}`, matchers[at] ?? '')),
    asked('severity', 'Up to severity', text('severity', 'medium')),
    asked('for', 'For how long', text('for', '2h')),
    asked('reason', 'Why', text('reason', '')),
  ]
  const form = { act: forms.act('/silences', 'Silence'), fields }
  const preview = matchers.some((one) => one.trim() !== '')
    ? await readPreview(asker, { ...query, reason: text('reason', '') || 'preview' })
    : null
  return { ...answer, silences, pauses, silence_form: form, preview }

  async function readPreview(of: Asker, given: object): Promise<RulesData['preview']> {
    const parsed = silenceInput.safeParse(given)
    if (!parsed.success) throw new PageError('bad_request', 'the silence cannot be read as it is')
    const nowMs = await redisNow(of.store)
    return previewSilence(of, buildSilence({ ...of, nowMs }, parsed.data))
  }
}

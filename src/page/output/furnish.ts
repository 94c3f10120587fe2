/** Adds to the answer of a question the forms and links of its view. */
import { redisNow } from '../../redis/scripts.ts'
import { eventNames } from '../../routing/matcher.ts'
import type { Asker } from '../asker.ts'
import { buildSilence, knownLabels, silenceInput } from '../acts/silences.ts'
import { type Act, type Field, type Forms, hidden, inLabels } from './forms.ts'
import { PageError } from '../page-error.ts'
import type { EventAnswer } from '../questions/event.ts'
import type { MessageAnswer } from '../questions/message.ts'
import type { NotToldAnswer } from '../questions/not-told.ts'
import { type Preview, previewSilence } from '../questions/preview.ts'
import type { RulesAnswer } from '../questions/rules.ts'
import { readFields } from '../question.ts'
import { addressOf } from './urls.ts'
import type { StatusAnswer } from '../questions/state.ts'

type Finding = StatusAnswer['findings'][number]

interface NowData extends Omit<StatusAnswer, 'findings'> {
  findings: (Omit<Finding, 'since' | 'stops'> & {
    since: string | null
    stops: boolean
    /** Where more of it is shown. */
    url: string | null
    acts: Act[]
  })[]
  /** One for each of the feeds, by its name; all take the same `reason`. */
  pauses: Act[]
}

export function furnishNow(answer: StatusAnswer, asker: Asker, forms: Forms): NowData {
  return {
    ...answer,
    findings: answer.findings.map((finding) => {
      const url = moreOf(finding)
      return {
        ...finding,
        remedy: url === null ? (finding.remedy ?? '') : onThePage,
        since: finding.since ?? null,
        stops: finding.stops ?? false,
        url,
        acts: forms.mayAct ? actsOf(finding, asker, forms) : [],
      }
    }),
    pauses: pausesOf('feeds', answer.feeds, forms),
  }
}

function pausesOf(what: string, named: readonly { name: string }[], forms: Forms): Act[] {
  if (!forms.mayAct) return []
  return named.map(({ name }) => forms.act(`/${what}/${encodeURIComponent(name)}/pause`, name))
}

/** In place of a command. */
const onThePage = 'see what was answered, mend it, then send again or give up.'

function moreOf({ kind, subject: sink }: Finding): string | null {
  if (kind === 'dead-letters') return addressOf('/not-told', { state: 'dead', since: '30d', sink })
  return kind === 'items-quarantined' ? addressOf('/not-told', { state: 'quarantined' }) : null
}

function actsOf({ check, kind, subject, stops }: Finding, { user }: Asker, forms: Forms): Act[] {
  const path = encodeURIComponent(subject)
  if (kind === 'feed-paused') return [forms.act(`/feeds/${path}/resume`, 'Resume')]
  if (check !== 'delivery' || user.accounts !== 'all') return []
  const confirm = `Sends one message marked TEST to each recipient of ${subject}.`
  return [
    forms.act(`/sinks/${path}/test`, 'Test', { confirm }),
    ...(stops ? [forms.act(`/sinks/${path}/resume`, 'Resume')] : []),
  ]
}

export function furnishMessage(
  { items, ...answer }: MessageAnswer,
  _asker: Asker,
  forms: Forms,
): Omit<MessageAnswer, 'items'> & { acts: Act[] } {
  const fields = items.map((item) => hidden('item', item))
  const confirm = 'Every recipient of it gets it again, under the same ids.'
  const isOver = answer.outcome === 'dead' || answer.outcome === 'delivered'
  const total = answer.total.toLocaleString('en-US')
  const label =
    answer.total > items.length ? `Send the worst ${items.length} of ${total} again` : 'Send again'
  const acts =
    forms.mayAct && isOver ? [forms.act('/items/resend', label, { confirm, fields })] : []
  return { ...answer, acts }
}

export function furnishEvent(
  answer: EventAnswer,
  _asker: Asker,
  forms: Forms,
): EventAnswer & { acts: Act[] } {
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
            fields: [{ name: 'note', label: 'Note', value: '', kind: 'text' }],
          }),
        ]
      : []),
  ]
}

/** Acts are done with the items that are chosen. */
export function furnishNotTold(
  answer: NotToldAnswer,
  _asker: Asker,
  forms: Forms,
): NotToldAnswer & { acts: Record<'replay' | 'discard', Act | null> } {
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

interface RulesData extends Omit<RulesAnswer, 'silences'> {
  silences: (RulesAnswer['silences'][number] & { acts: Act[] })[]
  /** One for each sink, by its name; all take the same `reason`. */
  pauses: Act[]
  /** `names`: what matchers may begin with; `problem`: why what the address says is no silence. */
  silence_form: { act: Act; fields: Field[]; names: string[]; problem: string | null } | null
  preview: Preview | null
}

/** The form is filled with what the address says, and shows what it would have hidden. */
export async function furnishRules(
  answer: RulesAnswer,
  asker: Asker,
  { forms, query }: { forms: Forms; query: Query },
): Promise<RulesData> {
  const silences = answer.silences.map((silence) => ({
    ...silence,
    acts:
      forms.mayAct && silence.origin === 'operator' && silence.phase !== 'over'
        ? [forms.act(`/silences/${silence.id}/expire`, 'End now')]
        : [],
  }))
  const pauses = asker.user.accounts === 'all' ? pausesOf('sinks', asker.config.sinks, forms) : []
  if (!forms.mayAct) return { ...answer, silences, pauses, silence_form: null, preview: null }
  const fields = silenceFields(query)
  const isFilled = fields.some(({ name }) => query[name] !== undefined)
  const { preview = null, problem = null } = isFilled ? await tryPreview(asker, query) : {}
  const names = [...new Set([...eventNames, ...knownLabels(asker)])].map((name) => `${name}=`)
  const form = { act: forms.act('/silences', 'Silence'), fields, names, problem }
  return { ...answer, silences, pauses, silence_form: form, preview }
}

type Query = Readonly<Record<string, unknown>>

function silenceFields(query: Query): Field[] {
  const matchers = [query['matchers'] ?? []].flat().map(String)
  const needed = (label: string, name: string, otherwise = ''): Field => {
    const value = typeof query[name] === 'string' ? query[name] : otherwise
    return { name, label, value, kind: 'needed' }
  }
  return [
    ...[0, 1, 2].map((at): Field => {
      const kind = at === 0 ? 'needed' : 'text'
      return { name: 'matchers', label: `Matcher ${at + 1}`, value: matchers[at] ?? '', kind }
    }),
    needed('Up to severity', 'severity', 'medium'),
    needed('For how long', 'for', '2h'),
    needed('Why', 'reason'),
  ]
}

/** What a silence as the address says would have hidden, or why it would be none; the reason may come later. */
async function tryPreview(
  asker: Asker,
  { reason, ...query }: Query,
): Promise<{ preview?: Preview; problem?: string }> {
  try {
    const nowMs = await redisNow(asker.store)
    const input = readFields(silenceInput, { matchers: [], ...query, reason: reason || 'preview' })
    const silence = buildSilence({ ...asker, nowMs }, input)
    return { preview: await previewSilence(asker, silence) }
  } catch (error) {
    if (!(error instanceof PageError)) throw error
    return { problem: inLabels([error.message, error.remedy ?? []].flat().join('; ')) }
  }
}

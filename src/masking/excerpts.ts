/**
 * What a sink with `excerpts: never` shows of an event: facts, which the names of their fields tell.
 * Any other text is left out, that of an unknown field too.
 */
import { ownFeed, type ThreatEvent } from '../event.ts'

/** What messages are made of: an event, and its full event where there is one. */
interface Content {
  feed: string
  event: ThreatEvent
  detail?: unknown
  /** Of all of it. */
  title?: string | undefined
  excerptsWithheld?: true
}

/** Last segments of the names of fields that say whose, where, which machine, malware or market. */
const factFields = new RegExp(
  `^(?:${[
    'user|user_?name|login|realname|(?:identity|display|victim|app|actor|author|commit)_name|name|term',
    'e?mails?|(?:\\w+_)?(?:domains?|host|hostname|urls?|ids?|uids?|uuid|emails?|ip_address)|ip|fqdn',
    'host_key|resources|site|path|file_?name|(?:repository|repo|source)_name|repository|digest|feed',
    '(?:hash|secret|relationship)_?type|type|detector|syntax|hwid|hardware|os|isp|asn|malware_family',
    'application|service|product|port|vulnerabilities|provider|organization|registrar|issuer|bins?',
    '(?:common|channel|conversation|category)_name|actor|author|advertiser|entity|price|currency',
    'forwarded_from(?:_username)?|stock_count|ship_from|ship_to|bank|brand|country|country_code|state',
    'city|location|timezone|industry|employee_count|pii_tags|mitigation_action',
  ].join('|')})$`,
)
/** Times and masks are facts in every field. */
const plainFact = /^(?:\d{4}-\d\d-\d\d(?:[T ][\d:.]{1,18}(?:Z|[+-]\d\d:?\d\d)?)?|\S?••••\S?)$/u
const factForm = /^(?:[^\r\n]{1,120}|[a-z]{2,20}:\/\/\S{1,2000})$/u
const wordForm = /^[\p{L}\p{N}_.:$-]{1,60}$/u

/** Tocsin's own events keep their words. */
export function withoutExcerpts<Subject extends Content>(subject: Subject): Subject {
  const { feed, event, detail } = subject
  if (feed === ownFeed) return subject
  const tags = event.tags.filter((tag) => wordForm.test(tag))
  const highlights = keepFacts(event.highlights) as typeof event.highlights
  const left = {
    title: undefined,
    event: { ...event, tags, notes: null, highlights },
    detail: detail === 'unavailable' ? detail : (keepFacts(detail) as typeof detail),
  }
  const isWhole = JSON.stringify(left) === JSON.stringify({ event, detail })
  return { ...subject, ...left, ...(!isWhole && { excerptsWithheld: true }) }
}

/** undefined: the value is a text. A list stays, if empty: it says which field matched. */
function keepFacts(value: unknown, field = ''): unknown {
  if (typeof value === 'string') {
    const isFact = factFields.test(field) && factForm.test(value)
    return isFact || plainFact.test(value) ? value : undefined
  }
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.flatMap((one) => keepFacts(one, field) ?? [])
  const entries = Object.entries(value).filter(([key]) => wordForm.test(key))
  const kept = entries.map(([key, one]) => [key, keepFacts(one, key.split('.').at(-1) ?? key)])
  return Object.fromEntries(kept.filter(([, one]) => one !== undefined)) as unknown
}

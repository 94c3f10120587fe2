/** Whose login an event of leaked credentials or an infection names, and which machine. */
import type { EventDetail, ThreatEvent, Victims } from '../../event.ts'
import { fullMask } from '../../masking/mask-secret.ts'
import { withheldText } from '../../masking/masking.ts'
import { accountFields, readMachine } from './describe-infections.ts'
import { readFields } from './description.ts'

/** Elsewhere a user name may be that of an author. */
const typesWithVictims: ReadonlySet<string> = new Set([
  'stealer_log',
  'bot',
  'credential',
  'leaked_credential',
  'valid_credential',
  'invalid_credential',
  'mitigated_credential',
])

/** An item shows few of its logins; a record keeps something of each that was seen before. */
const most = 8

/**
 * Reads logins as they matched, and the machine that the full event names. What is masked or withheld is
 * left out: no secret becomes a term, and what is alike only by its mask is not the same.
 */
export function readVictims(
  { type, highlights }: ThreatEvent,
  detail: EventDetail | null = null,
): Victims {
  if (!typesWithVictims.has(type)) return { logins: [], hosts: [] }
  const fields = readFields(detail, highlights)
  const logins = fields.matched(...accountFields).flatMap(readLogin)
  const host = readMachine(fields)
  return {
    logins: [...new Set(logins)].slice(0, most),
    hosts: host === null || isHidden(host) ? [] : [host],
  }
}

/** `joe@acme.com:h••••2`, as a dump has it: the login stands in front. */
const loginWithMask = /^([^\s:|;,]+)[\s:|;,]+\S?••••\S?$/u

function readLogin(text: string): string[] {
  const login = loginWithMask.exec(text)?.[1] ?? text
  return isHidden(login) ? [] : [login]
}

function isHidden(text: string): boolean {
  return text.includes(fullMask) || text.includes(withheldText)
}

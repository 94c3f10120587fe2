/** Describers of stealer logs, bots and stolen cookies. */
import { maskSecret } from '../../masking/mask-secret.ts'
import {
  wrapPresent,
  codeFact,
  secretFact,
  firstAndMore,
  readHost,
  joinPresent,
  phrase,
  listFact,
  revealedFact,
  textFact,
  timeFact,
  type Description,
  type Fact,
  type Subject,
} from './description.ts'

const hostEntry =
  /^(?:host ?name|host|computer(?: ?name)?|machine(?: ?name)?|pc ?name)\s*[:=]\s*(\S.*)$/iu

/** A log that an information stealer took from a machine. Older servers say `user_information`. */
export function describeStealerLog(subject: Subject): Description {
  const { event, fields } = subject
  const ofVictim = (key: string): string | null =>
    fields.text(`victim_information.${key}`, `user_information.${key}`)
  const malware = fields.text('malware_information.malware_family')
  const host = readHostName(fields)
  const country = ofVictim('country_code')
  const machine = joinPresent(
    [host ?? wrapPresent('user ', ofVictim('username')), wrapPresent('(', country, ')')],
    ' ',
  )
  const stolen = findStolenLogins(subject)
  const [accounts, loginPage, password] = stolen.facts
  const on = joinPresent([malware, machine], host === null ? ', ' : ' on ')
  return {
    typeLabel: 'Stealer log',
    headline: stolen.headline ?? on,
    tail: stolen.headline === null ? wrapPresent('in ', event.source) : wrapPresent(', ', on),
    facts: [
      // what names the machine is among the first five, for the next step says to isolate it
      accounts,
      codeFact('Host', host),
      codeFact('Windows user', ofVictim('username')),
      codeFact('IP address', ofVictim('ip_address')),
      password,
      loginPage,
      textFact('Malware', malware),
      timeFact('Infected', readInfectionTime(fields)),
      textFact('Country', country),
      textFact('System', ofVictim('os')),
      textFact('Source', event.source),
      countFact('Credentials', fields.count('credentials')),
      countFact('Cookies', fields.count('cookies')),
      codeFact('Hardware id', ofVictim('hwid')),
    ],
  }
}

/** An infected machine for sale. Markets say what is in it, seldom whose account. */
export function describeBot(subject: Subject): Description {
  const { event, fields } = subject
  const price = joinPresent([fields.text('price'), fields.text('currency')], ' ')
  const country = fields.text('victim_information.country_code')
  const isp = fields.text('victim_information.isp')
  const name = fields.text('name')
  const stolen = findStolenLogins(subject)
  return {
    typeLabel: 'Bot for sale',
    headline: stolen.headline ?? name,
    tail: phrase({
      'on a machine in': joinPresent([country, isp], ', '),
      for: price,
      at: event.source,
    }),
    facts: [
      ...stolen.facts,
      textFact('Market', event.source),
      textFact('Price', price),
      codeFact('Bot', name),
      textFact('Country', country),
      textFact('Provider', isp),
      textFact('System', fields.text('victim_information.os')),
      timeFact('Installed', fields.time('victim_information.installed_at')),
      textFact('Seller', fields.text('actor.name', 'actor.id')),
      codeFact('Page', fields.text('url')),
    ],
  }
}

/**
 * A stolen browser cookie: whoever has it is signed in, until it expires. Of its value nothing is
 * shown where no sink reveals it.
 */
export function describeCookie(subject: Subject): Description {
  const { event, fields, secret } = subject
  const isExpired = fields.text('state') === 'expired'
  const expiresAtMs = fields.time('expires_at', 'expires_utc', 'cookies.expires_utc')
  const name = fields.text('name', 'cookie_name', 'cookies.name')
  const site = fields.text('host_key', 'domain', 'host') ?? readSites(subject)[0] ?? null
  return {
    typeLabel: 'Stolen cookie',
    headline: joinPresent([wrapPresent('', name, site === null ? '' : ' of'), site], ' '),
    tail: joinPresent([isExpired ? '(expired)' : null, wrapPresent('in ', event.source)], ' '),
    facts: [
      codeFact('Cookie', name),
      codeFact('Site', site),
      timeFact(isExpired ? 'Expired' : 'Expires', expiresAtMs),
      codeFact('Path', fields.text('path')),
      revealedFact('Value', secret, event.kind === 'credential' ? fields.text('value') : null),
      textFact('Source', event.source),
      codeFact('In event', fields.text('event_uid')),
    ],
    isOwnWords: true,
  }
}

/** Last segments of the names of fields that hold logins. */
export const accountFields = ['username', 'user', 'login', 'email', 'emails', 'identity_name']

interface StolenLogins {
  /** "joe@acme.com and 2 more at login.acme.com"; null if none is known. */
  headline: string | null
  /** Accounts, login page, masked password. */
  facts: [accounts: Fact | null, loginPage: Fact | null, password: Fact | null]
}

/**
 * What matched, and the logins of the full event that match our identifiers, because an item shows
 * few of them. If nothing matched and none is ours, the first logins of the full event.
 */
function findStolenLogins(subject: Subject): StolenLogins {
  const { fields } = subject
  const matched = {
    accounts: fields.matched(...accountFields),
    sites: readSites(subject),
    password: fields.matched('password')[0] ?? null,
  }
  const hasMatched = matched.accounts.length + matched.sites.length > 0
  const inDetail = readLogins(subject, { oursOnly: hasMatched })
  const accounts = [...new Set([...matched.accounts, ...inDetail.accounts])]
  const sites = [...new Set([...matched.sites, ...inDetail.sites])]
  const { password } = hasMatched ? matched : inDetail // belongs to the account that is named first
  const site = firstAndMore([...new Set(sites.map(readHost))])
  return {
    headline: joinPresent([firstAndMore(accounts), site], ' at '),
    facts: [
      listFact(accounts.length > 1 ? 'Accounts' : 'Account', accounts, 'code'),
      listFact(sites.length > 1 ? 'Login pages' : 'Login page', sites, 'code'),
      secretFact('Password', password === null ? null : maskSecret(password)),
    ],
  }
}

function readSites({ fields }: Subject): string[] {
  return fields.matched('url', 'urls', 'resources', 'host_key', 'host', 'domain', 'domains')
}

/** Reads the older full event: `credentials[{url, username, password, application}]`. */
function readLogins(
  { event, fields }: Subject,
  { oursOnly }: { oursOnly: boolean },
): {
  accounts: string[]
  sites: string[]
  password: string | null
} {
  const logins = fields.items('credentials').map((login) => ({
    account: login.text('username') ?? '',
    site: login.text('url') ?? '',
    password: login.text('password'),
  }))
  const ours = event.identifiers.map(({ name }) => name.toLowerCase()).filter((name) => name !== '')
  const isOurs = (login: { account: string; site: string }): boolean =>
    ours.some((name) => `${login.account} ${login.site}`.toLowerCase().includes(name))
  const chosen = oursOnly || logins.some(isOurs) ? logins.filter(isOurs) : logins
  const distinct = (values: string[]): string[] => [...new Set(values.filter((one) => one !== ''))]
  return {
    accounts: distinct(chosen.map(({ account }) => account)),
    sites: distinct(chosen.map(({ site }) => site)),
    password: chosen[0]?.password ?? null,
  }
}

function readInfectionTime(fields: Subject['fields']): number | null {
  return fields.time(
    'malware_information.infected_at',
    'malware_information.infection_date',
    'installed_at',
  )
}

/** The name of the infected machine, else the id that its hardware gives it. */
export function readMachine(fields: Subject['fields']): string | null {
  return readHostName(fields) ?? fields.text('victim_information.hwid', 'user_information.hwid')
}

function readHostName(fields: Subject['fields']): string | null {
  const hardware = fields.list('victim_information.hardware', 'user_information.hardware')
  for (const entry of hardware) {
    const name = hostEntry.exec(entry)?.[1]
    if (name !== undefined) return name
  }
  return null
}

function countFact(label: string, count: number | null): ReturnType<typeof textFact> {
  return textFact(label, count === null ? null : String(count))
}

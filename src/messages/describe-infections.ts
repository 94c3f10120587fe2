import {
  around,
  codeFact,
  joined,
  textFact,
  timeFact,
  type Description,
  type Subject,
} from './description.ts'

const hostEntry =
  /^(?:host ?name|host|computer(?: ?name)?|machine(?: ?name)?|pc ?name)\s*[:=]\s*(\S.*)$/iu

/** A log that an information stealer took from a machine. Old servers say `user_information`. */
export function describeStealerLog({ event, fields }: Subject): Description {
  const ofVictim = (key: string): string | null =>
    fields.text(`victim_information.${key}`, `user_information.${key}`)
  const malware = fields.text('malware_information.malware_family')
  const host = hostName(fields.list('victim_information.hardware', 'user_information.hardware'))
  const country = ofVictim('country_code')
  const machine = joined([host ?? ofVictim('username'), around('(', country, ')')], ' ')
  return {
    typeLabel: 'Stealer log',
    headline: joined([malware ?? 'infection', around('on ', machine)], ' '),
    facts: [
      textFact('Malware', malware),
      timeFact('Infected', infectedAt(fields)),
      codeFact('Host', host),
      codeFact('User', ofVictim('username')),
      textFact('Country', country),
      textFact('System', ofVictim('os')),
      codeFact('IP address', ofVictim('ip_address')),
      codeFact('Hardware id', ofVictim('hwid')),
      countFact('Credentials', fields.count('credentials')),
      countFact('Cookies', fields.count('cookies')),
      textFact('Source', event.source),
    ],
  }
}

/** An infected machine for sale. */
export function describeBot({ event, fields }: Subject): Description {
  const price = joined([fields.text('price'), fields.text('currency')], ' ')
  const place = joined(
    [fields.text('victim_information.country_code'), fields.text('victim_information.isp')],
    ', ',
  )
  return {
    typeLabel: 'Bot for sale',
    headline: joined([fields.text('name') ?? 'infected machine', around('in ', place)], ' '),
    facts: [
      textFact('Price', price),
      textFact('Country', fields.text('victim_information.country_code')),
      textFact('Provider', fields.text('victim_information.isp')),
      textFact('System', fields.text('victim_information.os')),
      timeFact('Installed', fields.time('victim_information.installed_at')),
      textFact('Seller', fields.text('actor.name', 'actor.id')),
      textFact('Market', event.source),
      codeFact('Page', fields.text('url')),
    ],
  }
}

function infectedAt(fields: Subject['fields']): number | null {
  return fields.time(
    'malware_information.infected_at',
    'malware_information.infection_date',
    'installed_at',
  )
}

function hostName(hardware: string[]): string | null {
  for (const entry of hardware) {
    const name = hostEntry.exec(entry)?.[1]
    if (name !== undefined) return name
  }
  return null
}

function countFact(label: string, count: number | null): ReturnType<typeof textFact> {
  return textFact(label, count === null ? null : String(count))
}

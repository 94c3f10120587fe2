/** Events from infected machines. */
import { marked, zoneless, type Draft, type DraftContext } from './draft.ts'
import { hostOf, passwordOf } from './words.ts'

const malware = ['RedLine', 'Lumma', 'Vidar', 'StealC', 'Raccoon']
const places = [
  ['BR', 'São Paulo'],
  ['IN', 'Mumbai'],
  ['DE', 'München'],
  ['TR', 'İzmir'],
  ['US', 'Tulsa'],
] as const

export function stealerLog({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const [country, city] = random.pick(places)
  const user = `user${random.int(1, 999)}@${hostOf(subject)}`
  return {
    type: 'stealer_log',
    uid: `stealer_log/stealer_logs_live/${10_000 + number}`,
    severities: ['high', 'high', 'critical', 'medium'],
    data: {
      victim_information: {
        ip_address: `203.0.113.${random.int(1, 254)}`,
        username: user.split('@')[0],
        country_code: country,
        zip_code: null,
        location: city,
        hwid: random.hex(32).toUpperCase(),
        current_language: null,
        screensize_width: 1920,
        screensize_height: 1080,
        timezone: 'UTC-03:00',
        os: 'Windows 10 Pro [x64]',
        uac: 'AllowAll',
        process_elevation: random.chance(0.5),
        available_keyboards: ['Portuguese (Brazil)', 'English (United States)'],
        hardware: [`Name: DESKTOP-${random.hex(7).toUpperCase()}`, 'Intel(R) Core(TM) i5-8250U'],
        anti_viruses: ['Windows Defender'],
      },
      malware_information: {
        malware_family: random.pick(malware),
        build_id: random.hex(8),
        file_location: 'C:\\Users\\Public\\Setup.exe',
        infected_at: zoneless(createdAtMs - random.int(1, 96) * 3_600_000),
      },
    },
    highlights: {
      'credentials.url': [`https://${marked(hostOf(subject))}/login`],
      'credentials.username': [marked(user)],
      'credentials.password': [passwordOf(random)],
    },
  }
}

export function bot({ random, number, subject, createdAtMs }: DraftContext): Draft {
  const [country, city] = random.pick(places)
  return {
    type: 'bot',
    uid: `bot/russian_market/${500_000 + number}`,
    severities: ['medium', 'high'],
    data: {
      name: `${country}-${random.hex(8).toUpperCase()}`,
      url: null,
      actor: { id: null },
      victim_information: {
        country_code: country,
        location: city,
        isp: 'Vivo S.A.',
        installed_at: zoneless(createdAtMs - 86_400_000),
        os: 'Windows 11',
      },
      price: random.pick(['10', '25.00', '7.5']),
      currency: 'USD',
    },
    highlights: { resources: [`login.${marked(hostOf(subject))}`] },
  }
}

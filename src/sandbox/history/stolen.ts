/** What a stealer log holds besides its model: the credentials and cookies of the infected machine. */
import { createRandom, hashOf, type Random } from '../random.ts'
import { zoneless } from './draft.ts'
import type { SandboxEvent, Stolen, StolenCookie, StolenCredential } from './sandbox-event.ts'
import { passwordOf } from './words.ts'

const applications = ['Google Chrome [Default]', 'Mozilla Firefox', 'Microsoft Edge', 'Outlook']
const elsewhere = [
  'accounts.video.test',
  'mail.provider.test',
  'shop.market.test',
  'chat.game.test',
]
const cookieNames = ['session_id', 'SSO_AUTH', 'csrftoken', 'remember_me', '_ga', 'JSESSIONID']

/** null: an event without such contents. The same at each reading; what the event is given holds. */
export function stolenOf(event: SandboxEvent): Stolen | null {
  if (event.type !== 'stealer_log') return null
  const random = createRandom(hashOf(event.uid))
  const shown = (name: string): string =>
    event.highlights[`credentials.${name}`]?.[0]?.replaceAll(/<\/?mark>/g, '') ?? ''
  const first = {
    url: shown('url') || 'https://login.workplace.test/login',
    username: shown('username') || 'user@workplace.test',
    password: shown('password') || passwordOf(random),
    application: random.pick(applications),
  }
  const host = URL.canParse(first.url) ? new URL(first.url).hostname : 'workplace.test'
  const others = Array.from({ length: random.int(0, 44) }, () =>
    credentialOf(random, host, first.username),
  )
  const cookies = Array.from({ length: random.int(0, 50) }, () =>
    cookieOf(random, host, event.createdAtMs),
  )
  return {
    credentials: event.stolen?.credentials ?? [first, ...others],
    cookies: event.stolen?.cookies ?? cookies,
  }
}

function credentialOf(random: Random, host: string, username: string): StolenCredential {
  const site = random.chance(0.2) ? `sso.${host}` : random.pick(elsewhere)
  return {
    url: `https://${site}/${random.pick(['login', 'signin', 'auth'])}`,
    username: random.chance(0.6) ? username : `${random.hex(6)}@provider.test`,
    password: passwordOf(random),
    application: random.pick(applications),
  }
}

function cookieOf(random: Random, host: string, createdAtMs: number): StolenCookie {
  const site = random.chance(0.3) ? host : random.pick(elsewhere)
  return {
    host_key: random.chance(0.5) ? `.${site}` : site,
    path: random.pick(['/', '/', '/app']),
    expires_utc: zoneless(createdAtMs + random.int(-30, 365) * 86_400_000),
    name: random.pick(cookieNames),
    value: cookieValueOf(random),
  }
}

/** Long, and cheap to make: searches read the cookies of every log anew. */
function cookieValueOf(random: Random): string {
  const words = Array.from({ length: 4 }, () => Math.floor(random.next() * 2 ** 32))
  return words.map((word) => word.toString(16).padStart(8, '0')).join('')
}

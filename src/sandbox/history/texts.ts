/** Words of generated events: posts, actors, and the contents of stealer logs. */
import { createRandom, hashText, type Random } from '../options.ts'
import { formatZonelessTime } from '../times.ts'
import type { SandboxEvent, Stolen } from './history.ts'

export function markTerm(text: string): string {
  return `<mark>${text}</mark>`
}

/** Posts as found in underground sources, in several languages. */
const posts: readonly ((subject: string) => string)[] = [
  (subject) => `Fresh logs for ${subject}, 2 GB, cookies alive. DM only.`,
  (subject) => `Selling initial access: ${subject}, domain admin, revenue 300M. Escrow ok.`,
  (subject) => `Продаю доступ к ${subject}, RDP + VPN, цена договорная.`,
  (subject) => `Нужен пробив по ${subject}. Оплата в USDT сразу.`,
  (subject) => `出售 ${subject} 的数据库，包含邮箱和密码，可验证样本。`,
  (subject) => `${subject} のVPN認証情報を探しています。`,
  (subject) => `بيانات دخول جديدة لموقع ${subject} للبيع`,
  (subject) => `Vends base de données ${subject}, 40 000 lignes, échantillon sur demande.`,
  (subject) => `Wer hat Zugänge zu ${subject}? Zahle überdurchschnittlich, nur seriös.`,
  (subject) => `New phishing kit with a ${subject} template, bypasses 2FA 🔥🔥`,
]

const hostilePosts: readonly ((subject: string) => string)[] = [
  (subject) => `<!channel> <@U012AB3CD> <https://evil.example/|${subject}>`,
  (subject) => `<img src=x onerror=alert(1)><script>alert("${subject}")</script>`,
  (subject) => `=cmd|' /C calc'!A0,${subject}`,
  (subject) => `Subject: ${subject}\r\nBcc: everyone@example.com\r\n\r\nhello`,
  (subject) => `\u202Egpj.exe\u202C ${subject} \u2066hidden\u2069 zero\u200Bwidth`,
  (subject) => `\`\`\`break out\`\`\` *${subject}* _x_ ~y~ {{ event.uid }} {% raw %} \${subject}`,
  (subject) => `${subject} \u0007\u001B[31mred\u001B[0m @everyone @here`,
]

const actorNames = [
  'fin7_old',
  'Bjorka',
  'xX_wallet_Xx',
  'Тень',
  'darkcat',
  'n0va',
  '龙虾',
  'Zé Povinho',
]

/** Returns a post about `subject`; one in eight is hostile. */
export function writePost(random: Random, subject: string): string {
  return random.pick(random.chance(0.125) ? hostilePosts : posts)(subject)
}

export function makeActor(random: Random): { id: string; name: string } {
  return { id: String(random.int(1000, 999_999)), name: random.pick(actorNames) }
}

/** Returns a host name made from `subject`, without characters that DNS does not allow. */
export function toHost(subject: string): string {
  const host = subject.toLowerCase().replaceAll(/[^a-z0-9.]+/g, '-')
  return host.includes('.') ? host : `${host}.example`
}

/**
 * Returns a password that no other text of the sandbox contains, so that tests can search for leaks
 * of it.
 */
export function makePassword(random: Random): string {
  return `Pa55-${random.hex(10)}`
}

/**
 * Returns the stolen credentials and cookies of a stealer log, the same on each read;
 * `event.stolen` overrides generated ones. Null for other events.
 */
export function readStolen(event: SandboxEvent): Stolen | null {
  if (event.type !== 'stealer_log') return null
  const random = createRandom(hashText(event.uid))
  const highlighted = (name: string): string =>
    event.highlights[`credentials.${name}`]?.[0]?.replaceAll(/<\/?mark>/g, '') ?? ''
  const first = {
    url: highlighted('url') || 'https://login.workplace.test/login',
    username: highlighted('username') || 'user@workplace.test',
    password: highlighted('password') || makePassword(random),
    application: 'Google Chrome [Default]',
  }
  const host = URL.canParse(first.url) ? new URL(first.url).hostname : 'workplace.test'
  const others = Array.from({ length: random.int(0, 44) }, (_, n) => ({
    ...first,
    url: `https://site-${n}.test/login`,
    password: makePassword(random),
  }))
  const cookies = Array.from({ length: random.int(0, 50) }, (_, n) => ({
    host_key: n % 3 === 0 ? `.${host}` : `site-${n}.test`,
    path: n % 2 === 0 ? '/' : '/app',
    expires_utc: formatZonelessTime(event.createdAtMs + random.int(-30, 365) * 86_400_000),
    name: `session_${n}`,
    value: `${random.next()}`, // cheap to make: searches read the cookies of every log
  }))
  return {
    credentials: event.stolen?.credentials ?? [first, ...others],
    cookies: event.stolen?.cookies ?? cookies,
  }
}

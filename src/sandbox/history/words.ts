/** What people write in dark places, in several languages; and what an attacker would have us render. */
import type { Random } from '../random.ts'
import { marked } from './draft.ts'

const talk: readonly ((subject: string) => string)[] = [
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

const hostile: readonly ((subject: string) => string)[] = [
  (subject) => `<!channel> <@U012AB3CD> <https://evil.example/|${subject}>`,
  (subject) => `<img src=x onerror=alert(1)><script>alert("${subject}")</script>`,
  (subject) => `=cmd|' /C calc'!A0,${subject}`,
  (subject) => `Subject: ${subject}\r\nBcc: everyone@example.com\r\n\r\nhello`,
  (subject) => `\u202Egpj.exe\u202C ${subject} \u2066hidden\u2069 zero\u200Bwidth`,
  (subject) => `\`\`\`break out\`\`\` *${subject}* _x_ ~y~ {{ event.uid }} {% raw %} \${subject}`,
  (subject) => `${subject} \u0007\u001B[31mred\u001B[0m @everyone @here`,
]

const names = [
  'fin7_old',
  'Bjorka',
  'xX_wallet_Xx',
  'Тень',
  'darkcat',
  'n0va',
  '龙虾',
  'Zé Povinho',
]

/** A post about `subject`; one in eight is hostile. */
export function postAbout(random: Random, subject: string): string {
  return random.pick(random.chance(0.125) ? hostile : talk)(subject)
}

/** The post as a highlight shows it: matched terms in mark tags, nothing escaped. */
export function highlightOf(post: string, subject: string): string {
  return post.replaceAll(subject, marked(subject))
}

export function actorOf(random: Random): { id: string; name: string } {
  return { id: String(random.int(1000, 999_999)), name: random.pick(names) }
}

/** A name that a host could have, without the spaces and letters that DNS does not take. */
export function hostOf(subject: string): string {
  const host = subject.toLowerCase().replaceAll(/[^a-z0-9.]+/g, '-')
  return host.includes('.') ? host : `${host}.example`
}

/** A password that no other text of the sandbox contains, so that a leak of it can be searched for. */
export function passwordOf(random: Random): string {
  return `Pa55-${random.hex(10)}`
}

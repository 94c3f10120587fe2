/** Secrets behind a label that only a space follows: options of commands, headers, and words of a chat. */
import { isLabelWord, isPlaceholder, looksSecret } from './labelled-secrets.ts'
import type { Span } from './secret-shapes.ts'

const spoken =
  /(?<![\p{L}\p{N}_/.])(?:-{1,2})?((?:[\w-]{1,30}[-_])?(?:password|passwd|passphrase|pass|pwd|passwort|kennwort|contraseña|senha|пароль|wachtwoord|密码|密碼|口令|パスワード|비밀번호|secret|token|api-?key|requirepass|masterauth)) (?:[0-9] )?(?=(\S+))/giu
const command = [
  /\b(?:creds?|credentials|login|logins|account|access)(?: is)?[: ]{1,3}[\w.@\\-]{1,60}[:|]([^\s:|/]\S{2,100})/giu,
  /\bhtpasswd\b[^\n]{0,100}?\s-\w{0,4}b\w{0,4}\s\S{1,100}\s\S{1,60}\s(\S{1,200})/gu,
  /\becho\s["']?([^\s"'|]{3,100})["']?\s*\|\s*sudo\s/gu,
  /\bauth\s?=\s?\(\s?["'][^"'\n]{0,100}["'],\s?["']((?:[^"\\\n]|\\.){1,200}?)["']\)/giu,
  /\b(?:identified (?:with \S+ )?(?:by|as)|password|using) (?:password )?'((?:[^'\n]|''|\\'){1,400})'/giu,
  /\bmysql\w*\b[^\n]{0,200}?\s-p([^\s'"-][^\s'"]{2,100})/gu,
  /\b(?:sshpass|docker login|mysql\w*|mongo\w*|plink|pscp|psexec\S*|kinit|htpasswd|unrar|unzip|7z)\b[^\n]{0,200}?\s-(?:p|P|w)\s?(?:'([^'\n]{1,200})'|"([^"\n]{1,200})"|([^\s'"-]\S{2,100}))/gu,
  /\bcurl\b[^\n]{0,300}?\s(?:-u|--user|--proxy-user)[ =]?["']?[^\s:"']{1,100}:(?:([^"'\n]{1,200}(?=["']))|([^\s"']{1,200}))/gu,
  /\b(?:smbclient|rpcclient|smbmap|net rpc)\b[^\n]{0,200}?-U\s?["']?[^\s%"']{1,100}%([^\s"']{1,100})/gu,
  /\bredis-cli\b[^\n]{0,200}?\s-a\s(\S{1,200})/gu,
  /\bldap\w+\b[^\n]{0,300}?\s-w\s(\S{1,200})/gu,
  /\bnet use\b[^\n]{0,200}?\/u(?:ser)?:\S{1,100}\s([^\s/]\S{1,100})/giu,
  /\/u:\S{1,100}\s+\/p:(\S{1,100})/giu,
  /\b(?:sqlplus\s|jdbc:oracle:\w{1,10}:)[^\s/]{1,60}\/([^\s@/]{1,100})@/giu,
  /[?&](?:sig|signature|x-(?:amz|goog)-signature)=([^&\s"'<>]{16,2000})/giu,
  /"auth\\{0,3}"\s?:\s?\\{0,3}"([A-Za-z0-9+/]{11,400}[A-Za-z0-9+/=]=?)\\{0,3}"/gu,
  /\bUnseal Key \d{1,2}: (\S{20,200})/gu,
  /\b(?:getConnection|mysqli?_connect|new mysqli|new PDO)\s?\(\s?["'][^"'\n]{0,200}["'],\s?["'][^"'\n]{0,100}["'],\s?["']((?:[^"'\\\n]|\\.){1,200})["']/gu,
  /\b(?:NetworkCredential|UsernamePasswordCredentials|PasswordAuthentication|HTTPBasicAuth|login)\s?\(\s?["'][^"'\n]{1,100}["'],\s?["']((?:[^"'\\\n]|\\.){1,200})["']/gu,
  /\bConvertTo-SecureString\s(?:-String\s)?["']?([^\s"'$-][^\s"']{2,200})/giu,
  /\bsnmp-server community (\S{1,100})/giu,
  /(?<![\p{L}\p{N}_/.-])(?:admin|administrator|administrador|root|sa|postgres|oracle)\s?[:/]\s?(?=[^\s]{0,60}\d)(?=[^\s]{0,60}[!@#$*^])([\p{L}\p{N}][^\s/]{4,60})(?=[\s,;)]|$)/giu,
  /^[ \t]*(?:password|passwort|kennwort|contraseña|senha|mot de passe|пароль|wachtwoord)[ \t]*\r?\n[ \t]*(?=\S{0,60}\d|\S{0,60}[!#$%^&*])(\p{L}\S{4,60})[ \t]*$/gimu,
  /\blogin\s\S{1,100}\s+password\s(\S{1,200})/giu,
  /\bAUTH (?:PLAIN|LOGIN|\w+)? ?([A-Za-z0-9+/]{16,400}={0,2})(?![\w/])/gu,
  /\b(?:Bearer|Basic|Token) ([A-Za-z0-9._~+/=-]{16,20000})/gu,
  /(?:^|\s)(?:[Uu]|[Ll]|[Uu]ser|[Ll]ogin)\s?[:=]\s?\S{1,100}\s{1,4}[Pp]\s?[:=]\s?([^\s]{1,200})/gu,
]

/** Labels that only a space follows, in commands and among words: the word behind them, where it reads as a secret. */
export function spokenSpans(text: string): Span[] {
  const spans = [...text.matchAll(spoken)].flatMap(({ index, 0: label, 2: word = '' }): Span[] => {
    const from = index + label.length
    const isOption = label.startsWith('-')
    const [bare = ''] = /^[^\s"'`,;)\]}]+/u.exec(word.replace(/^["'`]/u, '')) ?? []
    const quote = /^["'`]/u.test(word) ? 1 : 0
    if (bare === '' || /^(?:[-:=]|[\w-]+=|\w*char\()/iu.test(bare)) return []
    if (!looksSecret(bare) && !(isOption && bare.length >= 4)) return []
    if (isPlaceholder(bare)) return []
    return [{ from: from + quote, to: from + quote + bare.length }]
  })
  const commands = command.flatMap((pattern) =>
    [...text.matchAll(pattern)].flatMap((match): Span[] => {
      const secret = match.slice(1).find((group) => group !== undefined)
      if (secret === undefined || isPlaceholder(secret) || isLabelWord(secret)) return []
      const from = match.index + match[0].lastIndexOf(secret)
      return [{ from, to: from + secret.length }]
    }),
  )
  return [...spans, ...commands]
}

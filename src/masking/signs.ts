/**
 * Signs by which a text may hold a secret. They ask whether a text smells of one at all, not where it
 * begins: a mistake costs an excerpt, not a password. Each takes time linear in the text.
 */
import { isOddNearWord, isPasswordGiven, isSecretAssigned } from './named-secrets.ts'
import { findMatches, holdsOdd, withoutThings } from './odd-tokens.ts'

export interface Sign {
  name: string
  /** A text that has this sign and none before it. */
  example: string
  test: (text: string) => boolean
}

const email = String.raw`[\p{L}\p{N}._%+'-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}](?:-?[\p{L}\p{N}]){0,62}){1,6}`
/** Directly behind a delimiter anything is a secret but what is no word. */
const mailPair = new RegExp(
  String.raw`(?<![\p{L}\p{N}._%+'@-])(?!git@)${email}["']?(?:(?:[:;|]|\s?(?:[-=]>|→)\s?)["']?(?![:;|]|\/\/|\d{1,2}:\d\d)[^\s"']|(?:\s?[,|:;\t/]\s?|-{2,6}|\s[-–—]\s|\s(?:(?:con|with|mit|avec|com|und|and|et|e|y|и|с)\s)?)["']?((?![(\[<\x60])[^\s"',]{4,60}))`,
  'gu',
)
const mailCell = new RegExp(`${email},\\p{Ll}[^\\s,@]{3}`, 'u')
const mailWithWord = new RegExp(
  String.raw`(?<![\p{L}\p{N}._%+'@-])${email}(?:\s?[:;|]\s[^\s:]{3,60}[ \t]*(?:\n|$|[|;])|[\s,;]{1,3}(?:\p{L}{1,4}\s)?(?:pass|pw|clave|sandi|parola|pin|code)(?!\p{L})[^\n]{0,8}\s\S{4})`,
  'iu',
)

/** `joe@acme.com:hunter2` and other delimiters. */
function isMailWithSecret(text: string): boolean {
  const isPair = findMatches(text, mailPair).some(
    ([, word]) =>
      word === undefined || holdsOdd(withoutThings(`${word} `), 1) || /^\d{6,}$/u.test(word),
  )
  return isPair || mailCell.test(text) || mailWithWord.test(text)
}

/** A name of a secret that was cut: `ssword: "tangerine dream"`. */
const cutLabel =
  /^\s?(?:a?s{0,2}wor[dt]|n{0,2}wort|a?s{0,2}phrase|e?cret|oken|pi_?key|(?:vate|cret|ret|cess)_?key|edentials?|ароль|raseña)["']?\s?[:=]\s?["']?[^\s"']/iu

const pairLine =
  /(?:^|\n)[ \t>*•-]{0,4}(?:\d{1,5}[.)] )?([^\s:;|,"'{}[\]()<>]{2,80})([:;|\t]|\s[:|]\s)(?!(?<=;)[^\n]{0,200};)(?!\/\/)(\S[^\n]{2,200}?)[ \t\r]*(?=\n|$)/gu
/** Counts, times, addresses, hosts and handles. */
const ordinaryValue =
  /^(?:@.*|[$€£]?\d[\d.,/x-]{0,9}\p{L}{0,3}[%+]?|\d{4}-\d\d-\d\d.*|[\d:.;,-]+|\p{L}+:\/\/.*|[\p{L}\p{N}._-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+|\p{Lu}{2,3}|:.*|\d+ \+0x.*)$/u
const host = /^[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+\.?(?:\/.*)?$/u
const notLogin =
  /^(?:md5|sha\d*|imphash|mailto|tel|urn|magnet|arn|cpe|git@.*|https?|\d{1,2}|[A-Za-z]:?)$/iu

/** A line `login:secret`: one whose login or secret looks like one, or several in a row. */
function holdsPairLine(text: string): boolean {
  const pairs = findMatches(text, pairLine)
    .map(([, left = '', , right = '']) => ({ left, right }))
    .filter(({ left, right }) => !notLogin.test(left) && !ordinaryValue.test(right))
  const isLogin = (left: string): boolean =>
    /\p{L}.*[\d._\\]|[@\\]|\d{5}/u.test(left) || /^\p{Ll}+$/u.test(left)
  const isSecret = ({ left, right }: { left: string; right: string }): boolean => {
    if (host.test(right) && !/[@\\]|\d{5}/u.test(left)) return false
    if (/\s/u.test(right)) return /\p{L}[\d._\\]\p{L}/u.test(left)
    return isLogin(left) || holdsOdd(`${right} `, 1)
  }
  const inRow = pairs.filter(({ right }) => !/\s/u.test(right) && !host.test(right))
  return inRow.length > 1 || pairs.some(isSecret)
}

/** Whether the query of an address has an odd value. */
function hasOddParameter(text: string): boolean {
  const values = findMatches(text, /[?&](?!v=|\w{0,20}id=|utm_)[\w.-]{1,40}=([^&\s"'<>#]{6,200})/gu)
  return values.some(([, one = '']) => holdsOdd(one, 2))
}

const quotedWord =
  /\p{L}\s["“„«](?!\S{0,36}\*\.\w{1,4}["”»])\s?([^\s"“”„«»]{6,40})\s?["”“»](?=[\s.,!?]|$)/gu

/** Whether a sentence quotes what is no word. */
function quotesOddWord(text: string): boolean {
  return findMatches(text, quotedWord).some(([, word = '']) => holdsOdd(withoutThings(word), 1))
}

const encodings: readonly RegExp[] = [
  /(?<![\w+/])(?=[\w+/]{0,40}[a-z\d][A-Z])(?:[A-Za-z0-9+/]{4}){1,50}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)(?=[\s"'<>),.;]|$)/u,
  /(?:%[\dA-Fa-f]{2}){3}|(?:\\x[\dA-Fa-f]{2}){3}|(?:&#x?[\dA-Fa-f]{2,4};){3}/u,
  /(?<![\dA-Za-z])(?:[\dA-Fa-f]{2} ){7}[\dA-Fa-f]{2}(?![\dA-Za-z])/u,
  /(?<!\d)[01]{8} [01]{8}(?!\d)/u,
]

/** Whether something is encoded in base64, percent signs, escapes, bytes or bits. */
function isEncoded(text: string): boolean {
  const left = withoutThings(text)
  return encodings.some((encoding) => left.search(encoding) !== -1)
}

type Look = RegExp | ((text: string) => boolean)

function sign(name: string, example: string, ...looks: readonly Look[]): Sign {
  const has = (look: Look, text: string): boolean =>
    typeof look === 'function' ? look(text) : text.search(look) !== -1
  return { name, example, test: (text) => looks.some((look) => has(look, text)) }
}

/** In the order in which they are asked. */
export const signs: readonly Sign[] = [
  sign(
    'key block',
    '-----BEGIN RSA PRIVATE KEY-----',
    /-----(?:BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----|PuTTY-User-Key|Private-Lines:|AGE-SECRET-KEY/u,
  ),
  sign(
    'header',
    'Authorization: x',
    /(?:proxy-)?authorization["']?\s?[:=](?!\s?["'`]?(?:\w{1,20} )?\*{3})/iu,
    /(?<!\p{L})(?:set-)?cookie["']?\s?[:=]\s?["']?[^\s=;]{1,60}=/iu,
    /(?<!\p{L})(?:bearer|basic|digest|apikey) [\w.~+/=-]{12}/iu,
  ),
  sign('password', 'the password is letmein', isPasswordGiven),
  sign('assignment', 'STRIPE_KEY=abc', isSecretAssigned, cutLabel),
  sign(
    'address with login',
    'ftp://joe:abc@host',
    /:\/\/[^\s/:@"'<>]{0,100}:(?!\d{1,5}(?:[/?#\s"'<>),.;|]|$))[^\s/"'<>:][^\s"'<>]|:\/\/[^\s/:@"'<>]{12,200}@/u,
    /(?<![\p{L}\p{N}/.:-])(?!mailto|sip|xmpp)[\w.\\-]{2,64}:[^\s@:/"'<>]{3,100}@[\w.-]{2}/u,
  ),
  sign(
    'address with key',
    'https://a.example/x?sig=abcdef',
    /hooks\.slack\.com\/(?:services|workflows|triggers)\/|\/api\/webhooks\/\d|webhook\.office\.com\/|api\.telegram\.org\/bot\d/iu,
    /[?&#](?:[\w-]*(?:token|key|sig|signature|secret|pass\w*|pwd|auth|code|session|jwt|sid|credential))=[^&\s]{4}/iu,
    /\/(?:reset|invite|verify|confirm|magic|token|auth|signed)[\w/-]{0,30}[/=][\w-]{0,80}\d[\w-]{8}/iu,
    /:\/\/[^\s#]{3,300}#[^\s@#/]{2,60}@[^\s@]{4}/u,
    hasOddParameter,
  ),
  sign('mail and secret', 'joe@a.example:abc', isMailWithSecret),
  sign('line of a list', 'joe.doe:monkey', holdsPairLine),
  sign(
    'record',
    'see a.example:joe:monkey there',
    /(?<![^\s"'([>|])(?:(?!(?:(?:url|host)[:;|](?:log\w*|user\w*|mail|port)|arn|urn|magnet|jdbc:\w+|std|docker|cvss|cpe|sha\d+|md5):|\w{2,20}:\/\/|\d{1,2}:\d\d|(?:[\da-f]{1,4}:){2})(?=[^\s]{0,300}\p{L})[^\s:|;,"'<>[\]]{2,200}:|(?:[a-z]{2,20}:\/\/[^\s|;,"'<>:]{1,300}|[\w-]{1,63}(?:\.[\w-]{1,63}){1,5})(?::\d{1,5})?(?:\/[^\s:|;,"'<>]{0,300})?([:|;]))[^\s:|;]{1,100}[:|;](?!\d{1,2}(?:\D|$))[^\s:|;]{2}/iu,
  ),
  sign(
    'site line',
    'a.example/in joe monkey',
    /(?:^|\n)[ \t]{0,4}(?:(?:[a-z]{2,20}:\/\/\S{1,300}|[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}\/\S{0,200})(?:[ ]?[|;,\t][ ]?|[ ])|[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}[ ]?[|;,\t][ ]?)(?![a-z]{2,9}:\/\/)[^\s|;,]{2,64}(?:[ ]?[|;,\t:][ ]?|[ ])[^\s|;,]{4,64}[ \t\r]*(?=\n|$)/giu,
    /:\/\/\S{4,300}\n(?!\w{2,9}:\/\/)[^\s:]{3,40}\n(?!\w{2,9}:\/\/)[^\s:]{4,40}(?:\n|$)/u,
  ),
  sign(
    'default login',
    'try root:toor',
    /(?<![\p{L}\p{N}/._-])(admin|administrat[oe]r|root|user|test|guest|postgres|mysql|sa|oracle|ubuntu|pi|support|operator|cisco|tomcat|manager|ftp|demo|service)(?:\s?:\s?(?!\/\/|\*{3}|(?:string|str|info|debug|warn\w*|error|trace|true|false|null)(?![^\s,;)])|\[|\d\d?(?:\.\d+)*(?:-\p{L}+)?(?!\S)|(?<=:\s)[\p{L}',]+(?:\s[\p{L}',]+){3})\S{3}|\s\1(?!\p{L})|\s?\/\s?(?:\1|password|toor|root|admin|\d{3,}|changeme)(?!\p{L}))/iu,
  ),
  sign(
    'login and more',
    'login: joe / monkey',
    /(?<!\p{L})(?:log(?:in|on)|user(?:name)?|usr|usuario|usuário|utilisateur|utente|benutzer(?:name)?|gebruiker(?:snaam)?|użytkownik|логин|учетка|доступ|creds?|credentials|zugang|identifiants?|acc[eè]so?|accès|account|id)(?:\s?[:=]\s?[^\s(]{2,60}\s{0,2}(?:[/|;]|,(?!\s[^\s,]+[\s,])|\s-)|\s[\w.@\\-]{2,60}\s{0,2}(?:[/|]|\bp(?:ass)?\b))\s?[:=]?\s?(?!\S{0,20}:)\S{4}/iu,
  ),
  sign(
    'label',
    'usuario x\nclave: monkey',
    /(?<!\p{L}|palabras? )(?:p[a@4][s$5]{2}|clave|parola|psw|chave|chiave)(?:["'*_`\])]{0,3}\s?[:=]|\t)\s?(?!\d+[\s,]*(?:\/|$))\S/iu,
    /(?:keys?|schl[üu]ssel|tokens?|secret|cl[ée]|clave|chave|chiave|ключ|токен)(?:(?:\s(?:is|ist|es|est|é|è)|[:=])\s?\S*\d{6}|[^\n]{0,30}?[:=\s][\da-f]{8}-[\da-f]{4}-)/iu,
    /(?<!\p{L})pass (?:is|was) \S{4}|(?:the|my|same|new|our|your) pass(?!\p{L})[^\n.:]{0,30}:\s?\S{4}|(?:is|as|was) (?:the|a|my|his|her|their|your|our) pass(?!\p{L})/iu,
    /(?<!\p{L})(?:creds?|credentials|zugangsdaten|credenziali|credenciales)\s[^\n]{0,30}?[-–:]\s\S{2,40}\s[-–/|]\s\S{4}/iu,
    /(?:^|\s)[ul]\s?[:=]\s?\S{1,60}\s{1,4}p\s?[:=]\s?\S/iu,
    /(?<!palabras? )\b(?:clave|parola|psw|chave)\s[^\n.]{0,30}?\s(?:es|è|é|e|este)\s\d{4}/iu,
  ),
  sign(
    'issued token',
    'https://a.example/glpat-abcdefghijkl',
    /(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|gl(?:pat|dt|rt|cbt)-|xox[abeoprs]-|xapp-|[sr]k_(?:live|test)_|whsec_|AIza|ya29\.|GOCSPX-|npm_|pypi-|dckr_\w{3}_|sk-|hf_|gsk_|pplx-|SG\.|shp(?:at|ca|pa|ss)_|do[opr]_v1_|dapi|hv[sbr]\.|AKIA|ASIA|LTAI|ATATT3|PMAK-|lin_api_|eyJ|[xyzt]prv|\d{8,10}:AA)[\w+/.-]{12}/u,
  ),
  sign(
    'command',
    'sshpass -p monkey ssh a',
    /auth\s?=\s?\(["']|(?:log_?in|log_?on|sign_?in|auth\w{0,20}|connect\w{0,12}|credentials?|mysqli|PDO)\s?\([^()\n]{0,120}?(["'])[^"'\n]{1,80}\1\s?,\s?(["'])[^"'\n]{3,80}\2/iu,
    /(?:enable|username \S{1,40}) (?:secret|password)(?: \d)? \S{4}|community string\s?[:=]?\s\S{4}|net user \S{1,40} (?!\/)\S{4}/iu,
    /(?<![\p{L}\p{N}])(?:sshpass|mysql\w*|mongo\w*|psql|redis-cli|ldap\w+|smbclient|smbmap|rpcclient|crackmapexec|cme|nxc|netexec|evil-winrm|impacket\S*|psexec\S*|wmiexec\S*|secretsdump\S*|xfreerdp|rdesktop|plink|pscp|kinit|htpasswd|curl|wget|docker login|az login|net use|runas|unzip|7z|unrar|openssl|vault|gpg|rclone|sqlplus|sqlcmd|svn|aws configure)\b[^\n]{0,200}?\s(?:-[a-zA-Z]{0,2}[pPwWaUbk]\b|-[pu]|--?\w{0,20}(?:pass|user|token|secret)\w{0,20}|\/u(?:ser)?:|\/p:|\S{0,30}secret\S{0,30}\s)/iu,
    /\|\s?(?:sudo -S|chpasswd)|(?:\w_bind|NetworkCredential|getConnection)\(|ConvertTo-SecureString/iu,
    /(?:team ?viewer|anydesk|rustdesk)\D{0,15}\d[\d ]{7}/iu,
    /identified (?:with \S+ )?(?:by|as) ['"]|requirepass (?!\*{3})\S|community \S+ r[ow]/iu,
    /(?:psk|passphrase|secret \d|key-string|(?:pre-?)?shared-?(?:key|secret)|wpa\d?[- ]key)(?:\s|\s?[:=]\s?)\S{4}|login[ \t]\S{1,60}[ \t]password/iu,
  ),
  sign(
    'dump',
    "insert into users values ('joe')",
    /\binsert\s+(?:ignore\s+)?into\s+\S{0,60}(?:user|member|account|customer|login|admin|cred)/iu,
    /\t(?:TRUE|FALSE)\t\S{0,200}\t(?:TRUE|FALSE)\t\d/iu,
    /(?<![\da-f])[\da-f]{32}:[\da-f]{32}(?![\da-f])|\w::[\w.-]{0,40}:[\da-f]{16}:/iu,
    /\$(?:2[abxy]?|[156y]|argon2\w*|apr1|krb5\w*)\$\S{8}/iu,
  ),
  sign(
    'code',
    'PIN 4711',
    /(?<!\p{L})(?:pin|otp|totp|tan|cvv2?|cvc2?|2fa|mfa|пин(?:-?код)?|(?:security|verification|access|recovery|backup|auth\w*|login|sms|door|alarm|gate|one-time|sicherheits|zugangs|bestätigungs)[- ]?codes?|(?<!zip |post |area |error |status |country |promo |exit |source |status_|error_|exit_|ftp |http |return |response )codes?(?!\p{L})|c[oó]digos?|codic[ei]|c[oó]d(?!e)|nip|geheim(?:zahl|nummer)|kilid\p{L}*|bitlocker|код\p{L}*|kod\p{L}*|验证码|驗證碼|認証コード|인증 ?(?:번호|코드))[^\d.,;!?]{0,30}?(?<![\d+])\d(?:[ -]?\d){2,9}(?!\d)/iu,
    /(?<!\p{L})pin (?:is|ist|es|est|é|è)\s[^\d\n]{0,40}\d{4}|(?:combination|kombination|zahlenschlo(?:ss|ß)|(?:opens?|unlocks?) (?:with|by)|(?:tür|tor|haus|tresor|alarm|safe|deur)-?code)\s?(?:is|ist|:|=)?\s?\d(?:[ -]?\d){3}/iu,
    /(?<!\p{L})(?:type|enter|dial|gib|tippe|marca|teclea|saisi[rs]|tape[rz]|digit[ae]|inserisci|ввест[иі]|введ\p{L}+|набер\p{L}+|wpisz|ketik|masukkan|nhập|入力|输入|입력)\s[^\d\n.,;]{0,15}?(?!(?:19|20)\d\d(?!\d))\d{4,8}(?![\d-])/iu,
    /(?:^|[,;|\t] ?)["']?(?:pin|code|nip|pass ?code|пин|код)["']?\s?(?=[,;|\t\n])[^\n]*\n[^\n]*?(?<!\d)\d{4,8}(?!\d)/imu,
    /(?<!\p{L})(?:pin|code|clave|c[oó]dig[oe]|код|nip)(?!\p{L})[^\n]{0,40}[?？][^\n]{0,8}\n[^\n]{0,50}?(?<![\d:.])\d{4,8}(?![\d:])/iu,
    /\bssn\b\D{0,12}\d{3}-?\d\d-?\d{4}/iu,
  ),
  sign(
    'card',
    'paid with 4556 7375 8689 9855',
    /(?<![\w.-]|\d )(?:[3-6]\d{3}([ -]?)\d{4}\1\d{4}\1\d{3,4}|3\d{3}[ -]?\d{6}[ -]?\d{5})(?![\w.-]| \d(?!\d?\/\d\d))/u,
    /(?<!\d)\d{13,19}[|:;,/ ]\d{1,2}[|:;,/ ]\d{2,4}[|:;,/ ]\d{3,4}(?!\d)/u,
  ),
  sign(
    'seed words',
    'abandon ability able about above absent absorb abstract absurd abuse access accident',
    /(?<![\p{L}\d])(?=[^,]{40}|(?:[^ ,]{3,13}, ?){11})(?:(?:\d{1,2}[.):]\s?)?(?!the |and |for |are |was |but |not |with |from |they |your |our |has |who |new |been |also |them |their |would |could |said |his |her |him |she |its |had |did |were |which |those |where )[a-z]{3,8}[ \n,]{1,3}){11}(?:\d{1,2}[.):]\s?)?[a-z]{3,8}(?!\p{L})/u,
  ),
  sign(
    'groups',
    '989001-569388-754049-454099',
    /(?<!\w)(?:(?:[a-z0-9]{4}[ -]){6,}[a-z0-9]{4}|(?:\d{6}-){3,}\d{6})(?!\w)/iu,
    /(?<![\w-])(?=[A-Z-]{0,24}\d)(?=[\d-]{0,24}[A-Z])(?:[A-Za-z0-9]{3,5}-){3,5}[A-Z0-9]{4,5}(?![\w-])/u,
    /(?<!\p{L})rot13(?!\p{L})/iu,
  ),
  sign('encoded', 'he wrote aHVudGVyMg== there', isEncoded),
  sign(
    'told',
    'log in as joe with monkey',
    /without (?:the )?quotes|sem aspas|sin comillas|sans (?:les )?guillemets|ohne anführungszeichen|без кавычек|senza virgolette/iu,
    /(?<!\p{L})(?:all (?:in )?(?:lower ?case|small letters|caps)|(?:with a )?capital \p{L}(?!\p{L})|(?<!(?:and|or|und|&|upper) )lower ?case(?=\s?(?:[.,!?)\n]|$))|alles klein(?!\p{L}|er)|klein ?geschrieben|gro(?:ß|ss)e[ms]? \p{L}(?!\p{L})|\p{L} (?:maiuscol[ao]|majuscule)|tutto (?:in )?minuscolo|todo en min[úu]sculas?|tudo min[úu]sculo|tout en minuscules?|с (?:большой|маленькой|заглавной|великої) (?:буквы|літери)|маленькими буквами|(?:кириллиц|латиниц)ей|küçük harf(?:le|lerle)?(?!\p{L})|małymi literami|kleine letters|(?<!satu )huruf kecil|حروف کوچک|全部小写|小文字で|소문자로)/iu,
    /(?<!\p{L})(?:log|sign|anmeld|meld|connect|conéct|conect|acced|entr|вой|зайд|войти|zalog|войт)\p{L}{0,6}\s(?:\S{1,20}\s){0,3}?(?:as|als|como|comme|come|как|под|jako)\s["“«]?(?!a |an |the )\S{2,40}\s(?:with|and|mit|con|avec|com|с|z)\s(?!(?:the|an?|your|my|our|his|their|full|no|only|der|dem|den|einem|el|la|los|un|una|le|les|\p{L}+ed)\s)["“«]?\S{4}/iu,
    /(?:unlock|decrypt|unzip|unpack|entsperr|entpack|desbloque|распак)\p{L}{0,5}\s(?:\S{1,20}\s){0,3}?(?:with|mit|con|avec)\s?(?:[:=]|["'“«]|\S*[_\d])|(?:opens?|with|use) ["'“«]\S{3,40}["'”»] to (?:unlock|decrypt|unzip|unpack|open)|opens? with (?:["'“«]|\S*[_\d]|\p{L}{5,}(?=\s*(?:[.,;!)\n]|$)))|(?:encrypted|locked)[^\n.]{0,30} the word is \S{4}/iu,
    /(?<!\p{L})reset\s(?:[\p{L}\p{N}.@\\-]+\s){1,4}to\s["']?(?-i:\p{Lu})\p{L}+-\S|(?<!\p{L})set\s(?:[\p{L}\p{N}.@\\-]+\s){0,3}(?:account|login|user)\sto\s["']?(?-i:\p{Lu})\p{L}+-\S/iu,
    /(?:security question|sicherheitsfrage|pregunta (?:secreta|de seguridad)|question (?:secrète|de sécurité)|domanda segreta|(?:секретный|контрольный) вопрос)[^\n]{0,60}(?:answer|antwort|respuesta|réponse|risposta|ответ|[-=]>|[:=])\s?[^\s?]/iu,
    /(?:wi-?fi|wlan)[^\n:=]{0,20}[:=]\s?\S{2,32}\s?[/|,]\s?\S{4}/iu,
    /(?:слово|слова|kelimesini|the word|das wort|le mot|la palabra|la parola)\s["“«]?(?!for|of|and|that|is|который|о)\p{L}{4,}[^\n]{0,40}(?:вход|открыва|enter|type|giri)|(?:ввест[иі]|введ|набер|вместо пароля|type|enter)[^\n.]{0,40}\s(?:слово|the word)\s\p{L}{4}/iu,
  ),
  sign('quoted', 'he typed «Bienvenue1» twice', quotesOddWord),
  sign('near a word', 'log in as joe, then hunter2 works', isOddNearWord),
  sign('odd token', 'Summer2024!', (text) => holdsOdd(withoutThings(text), 2)),
]

/**
 * Signs by which a text may hold a secret. They ask whether a text smells of one at all, not where it
 * begins: a mistake costs an excerpt, not a password. Each takes time linear in the text.
 */
import { findMatches, holdsOdd, withoutThings } from './odd-tokens.ts'
import { secretKind } from './secret-names.ts'

export interface Sign {
  name: string
  /** A text that has this sign and none before it. */
  example: string
  test: (text: string) => boolean
}

/** Words for a password, by their stems, in the languages of the API's sources. */
const passwordWord = [
  String.raw`p[a@4][s$5]{2}[-_ ]?w(?:[o0]r[dt](?!less|los)(?:s|es?|en|et)?|[oö]e?rtern?)|passwd|passw|pass-?phrases?|pass-?codes?|kenn?w[oö]rt(?:e[rs]|s)?|wachtwoord(?:en)?`,
  String.raw`(?<!\p{L})(?:pw|pwds?|pswd?|mdp|gesl[oa]|contra(?= del?\s| es\s)|cl?[oó]d(?:e d['’]|igo de |ice di? )acc[eè]s+o?|clave de acceso|zugangs\p{L}+|losung(?:swort)?|anmeldedaten|inloggegevens|app pass)(?!\p{L})`,
  String.raw`contrase[nñ]as?|senhas?(?!\p{L})|palavras?[- ]passe|mots? de passe|codes? secrets?|parol[ae] d['’]ordine|(?<!\p{L})ha(?:s[łl](?:o|a|em|ami|om|ach)|seł|śle)(?!\p{L})`,
  String.raw`(?<!\p{L})hesl[oaueěy]\p{L}{0,3}|l[öo]senord\p{L}*|adgangskode\p{L}*|kodeord\p{L}*|passord\p{L}*|salasan\p{L}*|jelsz[oó]\p{L}*|lozink\p{L}*|zapork\p{L}*`,
  String.raw`[şs]ifre(?:s[iı]|n[iı]z|m|ler\p{L}*|yi|de)?(?!\p{L})|m[ậa]t kh[ẩa]u|kata ?sandi|kata laluan|seed phrase|(?:recovery|secret|backup) (?:phrase|words)|mnemonic`,
].join('|')
/** In other scripts; what follows in Latin letters is seldom a word. */
const foreignPasswordWord = [
  String.raw`парол\p{L}*|пассворд\p{L}*|(?<!\p{L})пасс?(?!\p{L})|κωδικ\p{L}{1,4}(?: πρόσβασης)?|συνθηματικ\p{L}*|סיסמ\p{L}*|पासवर्ड|পাসওয়ার্ড|รหัสผ่าน`,
  String.raw`كلم(?:ة|ات) ?(?:ال)?(?:مرور|سر)|رقم ?(?:ال)?سري|رمز ?(?:ال)?(?:عبور|مرور)|باسو?ورد|پسورد|گذرواژه`,
  String.raw`密[码碼钥鑰]|口令|パス(?:ワード|コード|フレーズ)?|暗証番号|비밀 ?번호|비번|암호|패스워드`,
].join('|')
/** Everyday words: only an odd token beside them is a sign. */
const nearbyWord = String.raw`(?<!\p{L})(?:pass|secrets?|tokens?|keys?|creds?|credentials?|log[ -]?(?:in|ins|on)|user(?:name|id)?|usr|accounts?|acct|admin\p{L}*|root|clave|parola|chave|cl[ée]|schl[üu]ssel|zugang|acc[eè]so?|(?:digi|door|gate)codes?|credenziali|credenciales?|credenciais|identifiants?|usuario|usu[áa]rio|utilisateur|utente|benutzer\p{L}*|nutzer\p{L}*|u[żz]ytkownik|gebruiker\p{L}*|kullan[ıi]c[ıi]|klucz|konto|cuenta|compte|conta|логин\p{L}*|пользовател\p{L}*|уч[её]тк\p{L}*|доступ\p{L}*|ключ\p{L}*|токен\p{L}*|секрет\p{L}*|パスコード)(?!\p{L})|[_-](?:pass|key|token|secret)(?!\p{L})|用户名|用戶名|账号|帳號|帐号|登录|ユーザー|ログイン|アカウント|アクセス|아이디|계정|로그인`
const password = new RegExp(`(?:${passwordWord})|(${foreignPasswordWord})`, 'giu')
const nearby = new RegExp(nearbyWord, 'giu')

/** `password policy` and other things that are no password. */
const compound =
  /^(?:['’]s)?(?:\.\p{Ll}|[-_ ]{0,2}(?:confirm|polic|manag|reset|spray|crack|guess|hash|protect|recover|stealer|stealing|grabb|length|strength|field|prompt|rule|list|leak|breach|reuse|re-use|hygiene|chang|rotat|expir|auth|based|less|vault|database|dump|login|attack|theft|input|box|form|link|page|sharing|audit|generat|requirement|update|storage|combos?|wechsel|änder|schutz|richtlini|abfrage|eingabe))/iu
/** Behind `is`: what is said of a password that is not given. */
const attribute =
  /^(?:not|never|always|still|also|only|too|very|so|required|optional|mandatory|weak|strong|safe|secure|in?valid|in?correct|wrong|enough|important|unique|short|long|longer|different|being|been|set|sent|kept|reset|shown|hidden|known|case|what|how|why|when|where|one|an?|at|in|on|for|from|nicht|falsch|obligator\p{L}+|obligatoire|falsa|non|pas|nie|не|\p{L}+(?:ed|able|ible|[ai]d[oa]s?|[ae]t[ioa]|ée?s?))(?!\p{L})/iu
const given =
  /(?:[:=|→⇒➡👉「『\t]|[-=]>|\s[-–—]\s|\p{L}["'”’]?[)\]]?\s[“„«"'‘]|["'] ?, ?["']|\(\s?["'])\s*[\p{L}\p{N}\p{P}\p{S}]/u
const copula =
  /(?:^|\s)(?:is|was|are|ist|war|lautet|hei[ßs]t|es|era|est|é|è|jest|är|este|je|là|είναι|adalah|это|был|هي|هو|היא)\s+(?=\S)|^ha\S{2,4}\s(?:\S+\s){0,3}to\s|^salasana\S* on\s|c['’]est\s|[是为為]|(?:は|는|은|가|이)\s*(?=[「“"'!-~])/iu
/** `hunter2 as the password`, `hunter2 is his password`. */
const namedBefore =
  /(?:^|\s)(?:as|is|was|als|comme|como|come|jako|olarak|som)\s(?:(?:a|an|the|my|his|her|their|your|our|one of|new|default|le|la|o|el|un|una|das|ein)\s){0,3}$/iu
/** After an English word for a password, these go on with a sentence. */
const goesOn =
  /^(?:and|or|in|on|for|to|of|with|from|by|at|that|which|who|when|while|if|must|should|can|can't|cannot|may|might|will|would|could|has|have|had|does|did|do|needs?|gets?|got|again|every|before|after|because|as|only|too|so|but|than|then|until|via|over|into|using|through|without|across|is|was|are|were|isn't|\p{L}+(?:ed|ing|ly)|und|oder|für|zu[mr]?|im|auf|mit|von|vom|der|die|das|des|wird|wurde|muss|soll|sollte|kann|hat|et|ou|pour|du|dans|sur|avec|doit|peut|qui|para|del|con|debe|puede|cada|que|do|da|em|com|deve|pode|per|di|nel|del|può|che|voor|van|op|met|moet|lub|dla|na|musi|jest|się|или|для|от|на|при|из|должен|может|после|через|не|и|nie|przez|por|lors|sans|bei|nach|bij|zonder|sem|senza|ve|veya|için|ile|erano|sono|foi|foram|eran|fueron|sont|sind|waren|werden|were|rồi)(?!\p{L})/iu
const plural =
  /(?:pass-? ?(?:words|codes|phrases)|w[öo]e?rter\p{L}*|rase[nñ]as|senhas|mots de passe|woorden|haseł|has[łl]a|ler\p{L}*|парол(?:и|і|ей|ям|ями|ях)|كلمات.*)$/iu
/** In these languages a word that stands behind is the password, unless the sentence goes on. */
const saidPlainly =
  /^(?:p[a@4]|pw|mot|mdp|contra|senha|wacht|kenn|has|пароль$|[şs]ifre|hesl|l[öo]sen|recovery|mnem)/iu

/** Whether a word for a password comes with something that may be one. */
function isPasswordGiven(text: string): boolean {
  return findMatches(text, password).some(({ index, 0: label, 1: foreign }) => {
    const before = text.slice(Math.max(0, index - 40), index)
    const after = text.slice(index + label.length, index + label.length + 80)
    if (compound.test(after)) return false
    if (isHeading(before, after)) return true
    const [sentence = ''] = /^[^\n.!。]*(?:[.!](?!\s)[^\n.!。]*)*/u.exec(after) ?? []
    if (plural.test(label)) return /^\s{0,3}[:=|]\s*(?!\d[\d.,]*[kKmM]?(?!\w))\S/u.test(after)
    const value = given.exec(sentence)
    if (value !== null)
      return !isPlaceholder(sentence.slice(value.index + value[0].length - 1).trim())
    if (foreign !== undefined && /^[^\n]{0,12}\n[^\n]{0,10}[:：]/u.test(after)) return true
    const rest = sentence.replace(/^["'”’»*_`)\]}>]{1,4}/u, '')
    const near = rest.slice(0, 50)
    const stated = copula.exec(near) ?? copula.exec(label + near)
    if (stated !== null && !attribute.test(rest.slice(stated.index + stated[0].length))) return true
    if (foreign !== undefined && /^[^\n。.]{0,6}[!-~]{3,}/u.test(rest)) return true
    if (/(?<![\d.#-])(?!(?:19|20)\d\d(?!\d))\d{4,}(?![\d.-])/u.test(rest.slice(0, 40))) return true
    const word = /^\s(\p{L}[^\s.,!?;]{2,})/u.exec(rest)?.[1]
    return (
      namedBefore.test(before) ||
      (word !== undefined && saidPlainly.test(label) && !goesOn.test(word))
    )
  })
}

/** Whether the word stands alone above something, or in the head of a table. */
function isHeading(before: string, after: string): boolean {
  const line = /[^\n]*$/u.exec(before)?.[0] ?? ''
  if (/^[^\p{L}\p{N}]*$/u.test(line) && /^[^\p{L}\p{N}\n]*\n\s*\S/u.test(after)) return true
  const delimiter = /([,;|\t])[\s"']*$/u.exec(line)?.[1] ?? /^["'\s]*?([,;|\t])/u.exec(after)?.[1]
  const [, below = ''] = /\n([^\n]+)/u.exec(after) ?? []
  return delimiter !== undefined && below.includes(delimiter)
}

/** Whether an odd token stands near a word for a password or a login. */
function isOddNearWord(text: string): boolean {
  const bare = withoutThings(text)
  const near = (pattern: RegExp, before: number, behind: number): boolean =>
    findMatches(bare, pattern).some(({ index, 0: { length } }) =>
      holdsOdd(bare.slice(Math.max(0, index - before), index + length + behind), 1),
    )
  return near(password, 50, 70) || near(nearby, 25, 45)
}

const assignment =
  /(?<![\p{L}\p{M}\p{N}_$.-])([\p{L}\p{M}\p{N}_$.-]{2,60})(["'`\])*]{0,4}\s{0,3}(?:=>|:=|={1,2}|[:→])\s{0,3})(["'`]?)(?=([^"'`\n]{1,80}))/gu
const placeholder =
  /^["']?(?:(?:null|none|nil|true|false|undefined|string|str|text|bytes|required|optional|n\/a|user(?:name)?|login|e?-?mail|name|phone|ip|url|host|hash)(?![\p{L}\d@._!-]|\s?=)|\*{3,}|•+|x{4,}|-+|\.{3}|<[^<>\n]{1,60}>\s*$|\[[A-Z ]+\]|\$\{|\{\{|%s|S-1-[\d-]+|["')\]]+$|[\^~]?\d+\.\d+\.\d+(?:["']|$)|\$?[\w$.]{1,60}\((?:["'\w)]|$)|[\w$.]{1,60}\[(?:["']|$)|(?:req|request|self|this|form|process\.env)\.[\w.]+[;,)]?$)/iu
/** `REPLACE_ME` in a template. */
const toReplace = /^["']?(?:\p{Lu}{2,}_)+\p{Lu}{2,}["']?[,;]?$/u

function isPlaceholder(value: string): boolean {
  return placeholder.test(value) || toReplace.test(value)
}

/** Names of secrets that are everyday words as well. */
const everyday =
  /^(?:tokens?|secrets?|keys?|pass|passes|pin|pan|sid|seed|hash(?:es)?|bearer|clave|parola|authorization|cookies?|sess|session|ключ|токен\p{L}?)$/iu

/** Whether a name of a secret is given a value: `DB_PASSWORD=…`, `"apiKey": "…"`. */
function isSecretAssigned(text: string): boolean {
  return findMatches(text, assignment).some(([, name = '', sign = '', quote = '', value = '']) => {
    if (isPlaceholder(value.trim())) return false
    if (/^(?:\/\/|\d[;,]?$)/u.test(value)) return false
    if (secretKind(name) === null) return false
    if (/s$/iu.test(name) && /^\d[\d.,]*[kKmM]?(?![\w.])/u.test(value)) return false
    if (!everyday.test(name)) return true
    return quote !== '' || sign.trim() !== ':' || holdsOdd(value, 1) || /\d{3}/u.test(value)
  })
}

const email = String.raw`[\p{L}\p{N}._%+'-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}](?:-?[\p{L}\p{N}]){0,62}){1,6}`
/** Directly behind a delimiter anything is a secret but what is no word. */
const mailPair = new RegExp(
  String.raw`(?<![\p{L}\p{N}._%+'@-])(?!git@)${email}["']?(?:(?:[:;|]|\s?(?:[-=]>|→)\s?)["']?(?![:;|]|\/\/|\d{1,2}:\d\d)[^\s"']|(?:\s?[,|:;\t/]\s?|-{2,6}|\s[-–—]\s|\s)["']?((?![(\[<\x60])[^\s"',]{4,60}))`,
  'gu',
)
const mailCell = new RegExp(`${email},\\p{Ll}[^\\s,@]{3}`, 'u')
const mailWithWord = new RegExp(
  String.raw`(?<![\p{L}\p{N}._%+'@-])${email}\s?[:;|]\s[^\s:]{3,60}[ \t]*(?:\n|$|[|;])`,
  'u',
)

/** `joe@acme.com:hunter2` and other delimiters. */
function isMailWithSecret(text: string): boolean {
  const isPair = findMatches(text, mailPair).some(
    ([, word]) =>
      word === undefined || holdsOdd(withoutThings(`${word} `), 1) || /^\d{6,}$/u.test(word),
  )
  return isPair || mailCell.test(text) || mailWithWord.test(text)
}

const pairLine =
  /(?:^|\n)[ \t>*•-]{0,4}(?:\d{1,5}[.)] )?([^\s:;|,"'{}[\]()<>]{2,80})([:;|\t]|\s[:|]\s)(?!\/\/)(\S[^\n]{2,200}?)[ \t\r]*(?=\n|$)/gu
/** Counts, times, addresses, hosts and handles. */
const ordinaryValue =
  /^(?:@.*|[$€£]?\d[\d.,/x-]{0,9}\p{L}{0,3}[%+]?|\d{4}-\d\d-\d\d.*|[\d:.]+|\p{L}+:\/\/.*|[\p{L}\p{N}._-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+|\p{Lu}{2,3}|:.*)$/u
const host = /^[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+\.?(?:\/.*)?$/u
const notLogin =
  /^(?:md5|sha\d*|imphash|mailto|tel|urn|magnet|arn|git@.*|https?|\d{1,2}|[A-Za-z]:?)$/iu

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

/** Whether an address has a key, or an odd value, in its path or query. */
function holdsAddressKey(text: string): boolean {
  const values = findMatches(text, /[?&](?!v=|\w{0,20}id=|utm_)[\w.-]{1,40}=([^&\s"'<>#]{6,200})/gu)
  return text.search(patterns.addressKey) !== -1 || values.some(([, one = '']) => holdsOdd(one, 2))
}

const quotedWord = /\p{L}\s["“„«]\s?([^\s"“”„«»]{6,40})\s?["”“»](?=[\s.,!?]|$)/gu

/** Whether a sentence quotes what is no word. */
function quotesOddWord(text: string): boolean {
  return findMatches(text, quotedWord).some(([, word = '']) => holdsOdd(withoutThings(word), 1))
}

const patterns = {
  keyBlock:
    /-----(?:BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----|PuTTY-User-Key|Private-Lines:|AGE-SECRET-KEY/u,
  /** By the prefixes that issuers publish. */
  issued:
    /(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|gl(?:pat|dt|rt|cbt)-|xox[abeoprs]-|xapp-|[sr]k_(?:live|test)_|whsec_|AIza|ya29\.|GOCSPX-|npm_|pypi-|dckr_\w{3}_|sk-|hf_|gsk_|pplx-|SG\.|shp(?:at|ca|pa|ss)_|do[opr]_v1_|dapi|hv[sbr]\.|AKIA|ASIA|LTAI|ATATT3|PMAK-|lin_api_|eyJ|[xyzt]prv|\d{8,10}:AA)[\w+/.-]{12}/u,
  header:
    /(?:proxy-)?authorization["']?\s?[:=]|(?<!\p{L})(?:set-)?cookie["']?\s?[:=]\s?["']?[^\s=;]{1,60}=|(?<!\p{L})(?:bearer|basic|digest|apikey) [\w.~+/=-]{12}/iu,
  address:
    /:\/\/[^\s/:@"'<>]{0,100}:(?!\d{1,5}(?:[/?#\s"'<>),.;|]|$))[^\s/"'<>:][^\s"'<>]|:\/\/[^\s/:@"'<>]{12,200}@|(?<![\p{L}\p{N}/.:-])(?!mailto|sip|xmpp)[\w.\\-]{2,64}:[^\s@:/"'<>]{3,100}@[\w.-]{2}/u,
  addressKey:
    /hooks\.slack\.com\/(?:services|workflows|triggers)\/|\/api\/webhooks\/\d|webhook\.office\.com\/|api\.telegram\.org\/bot\d|[?&#](?:[\w-]*(?:token|key|sig|signature|secret|pass\w*|pwd|auth|code|session|jwt|sid|credential))=[^&\s]{4}|\/(?:reset|invite|verify|confirm|magic|token|auth|signed)[\w/-]{0,30}[/=][\w-]{0,80}\d[\w-]{8}/iu,
  triple:
    /(?<![^\s"'([>|])(?:(?!(?:arn|urn|magnet|std|docker|sha\d+|md5):|\w{2,20}:\/\/|\d{1,2}:\d\d|(?:[\da-f]{1,4}:){2})(?=[^\s]{0,300}\p{L})[^\s:|;,"'<>[\]]{2,200}:|(?:[a-z]{2,20}:\/\/[^\s|;,"'<>:]{1,300}|[\w-]{1,63}(?:\.[\w-]{1,63}){1,5})(?::\d{1,5})?(?:\/[^\s:|;,"'<>]{0,300})?([:|;]))[^\s:|;]{1,100}[:|;](?!\d{1,2}(?:\D|$))[^\s:|;]{2}/iu,
  siteLine:
    /(?:^|\n)[ \t]{0,4}(?:(?:[a-z]{2,20}:\/\/\S{1,300}|[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}\/\S{0,200})(?:[ ]?[|;,\t][ ]?|[ ])|[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}[ ]?[|;,\t][ ]?)(?![a-z]{2,9}:\/\/)[^\s|;,]{2,64}(?:[ ]?[|;,\t:][ ]?|[ ])[^\s|;,]{4,64}[ \t\r]*(?=\n|$)/giu,
  defaultLogin:
    /(?<![\p{L}\p{N}/._-])(admin|administrat[oe]r|root|user|test|guest|postgres|mysql|sa|oracle|ubuntu|pi|support|operator|cisco|tomcat|manager|ftp|demo|service)(?:\s?:\s?(?!\/\/)\S{3}|\s\1(?!\p{L})|\s?\/\s?(?:\1|password|toor|root|admin|\d{3,}|changeme)(?!\p{L}))/iu,
  loginAndMore:
    /(?<!\p{L})(?:log(?:in|on)|user(?:name)?|usr|usuario|usuário|utilisateur|utente|benutzer(?:name)?|gebruiker(?:snaam)?|użytkownik|логин|учетка|доступ|creds?|credentials|zugang|identifiants?|acc[eè]so?|accès|account|id)(?:\s?[:=]\s?\S{2,60}\s{0,2}(?:[/|;,]|\s-)|\s[\w.@\\-]{2,60}\s{0,2}(?:[/|]|\bp(?:ass)?\b))\s?[:=]?\s?(?!\S{0,20}:)\S{4}/iu,
  labelled:
    /(?<!\p{L}|palabras? )(?:p[a@4][s$5]{2}|clave|parola|psw|chave|chiave)(?:["'*_`\])]{0,3}\s?[:=]|\t)\s?(?!\d+[\s,]*(?:\/|$))\S|(?:keys?|schl[üu]ssel|tokens?|secret|cl[ée]|clave|chave|chiave|ключ|токен)(?:(?:\s(?:is|ist|es|est|é|è)|[:=])\s?\S*\d{6}|[^\n]{0,30}?[:=\s][\da-f]{8}-[\da-f]{4}-)|(?<!\p{L})pass (?:is|was) \S{4}|(?:is|as|was) (?:the|a|my|his|her|their|your|our) pass(?!\p{L})|(?:^|\s)[ul]\s?[:=]\s?\S{1,60}\s{1,4}p\s?[:=]\s?\S|(?<!palabras? )\b(?:clave|parola|psw|chave)\s[^\n.]{0,30}?\s(?:es|è|é|e|este)\s\d{4}/iu,
  tool: /auth\s?=\s?\(["']|(?<![\p{L}\p{N}])(?:sshpass|mysql\w*|mongo\w*|psql|redis-cli|ldap\w+|smbclient|smbmap|rpcclient|crackmapexec|cme|nxc|netexec|evil-winrm|impacket\S*|psexec\S*|wmiexec\S*|secretsdump\S*|xfreerdp|rdesktop|plink|pscp|kinit|htpasswd|curl|wget|docker login|az login|net use|runas|unzip|7z|unrar|openssl|vault|gpg|rclone|sqlplus|sqlcmd|svn|aws configure)\b[^\n]{0,200}?\s(?:-[a-zA-Z]{0,2}[pPwWaUbk]\b|-[pu]|--?\w{0,20}(?:pass|user|token|secret)\w{0,20}|\/u(?:ser)?:|\/p:|\S{0,30}secret\S{0,30}\s)|\|\s?(?:sudo -S|chpasswd)|\w_bind\(|(?:team ?viewer|anydesk|rustdesk)\D{0,15}\d[\d ]{7}|without (?:the )?quotes|sem aspas|sin comillas|sans (?:les )?guillemets|ohne anführungszeichen|без кавычек|senza virgolette|identified (?:with \S+ )?(?:by|as) ['"]|requirepass \S|community \S+ r[ow]|(?:psk|passphrase|secret \d|key-string) \S{4}|ConvertTo-SecureString|NetworkCredential\(|getConnection\(|login\s\S{1,60}\spassword/iu,
  dump: /\binsert\s+(?:ignore\s+)?into\s+\S{0,60}(?:user|member|account|customer|login|admin|cred)|\t(?:TRUE|FALSE)\t\S{0,200}\t(?:TRUE|FALSE)\t\d|(?<![\da-f])[\da-f]{32}:[\da-f]{32}(?![\da-f])|\$(?:2[abxy]?|[156y]|argon2\w*|apr1|krb5\w*)\$\S{8}/iu,
  code: /(?<!\p{L})(?:pin|otp|totp|tan|cvv2?|cvc2?|2fa|mfa|пин(?:-?код)?|(?:security|verification|access|recovery|backup|auth\w*|login|sms|door|alarm|gate|one-time|sicherheits|zugangs|bestätigungs)[- ]?codes?|(?<!zip |post |area |error |status |country |promo |exit |source )codes?|c[oó]digos?|codic[ei]|c[oó]d|nip|geheim(?:zahl|nummer)|kilid\p{L}*|bitlocker|код\p{L}*|kod\p{L}*|验证码|驗證碼|認証コード|인증 ?(?:번호|코드))[^\d.,;!?]{0,30}?(?<!\d)\d(?:[ -]?\d){2,9}(?!\d)|\bssn\b\D{0,12}\d{3}-?\d\d-?\d{4}/iu,
  card: /(?<![\d.-]|\d )(?:[3-6]\d{3}([ -]?)\d{4}\1\d{4}\1\d{3,4}|3\d{3}[ -]?\d{6}[ -]?\d{5})(?![\d.-]| \d)|(?<!\d)\d{13,19}[|:;,/ ]\d{1,2}[|:;,/ ]\d{2,4}[|:;,/ ]\d{3,4}(?!\d)/u,
  words:
    /(?<![\p{L}\d])(?:(?:\d{1,2}[.):]\s?)?(?!the |and |for |are |was |but |not |with |from |they |your |our |has |who |new |been |also |them |their |would |could |said |his |her |him |she |its |had |did |were |which |those |where )[a-z]{3,8}[ \n,]{1,3}){11}(?:\d{1,2}[.):]\s?)?[a-z]{3,8}(?!\p{L})/u,
  /** Groups of a code for devices. */
  groups:
    /(?<!\w)(?:(?:[a-z0-9]{4}[ -]){6,}[a-z0-9]{4}|(?:\d{6}-){3,}\d{6})(?!\w)|(?<!\p{L})rot13(?!\p{L})/iu,
  encoded:
    /(?<![\w+/])(?=[\w+/]{0,40}[a-z])(?=[\w+/]{0,40}[A-Z])[A-Za-z0-9+/]{7,200}={1,2}(?=[\s"'<>),.;]|$)|(?:%[\dA-Fa-f]{2}){3}|(?:\\x[\dA-Fa-f]{2}){3}|(?:&#x?[\dA-Fa-f]{2,4};){3}|(?<![\dA-Za-z])(?:[\dA-Fa-f]{2} ){7}[\dA-Fa-f]{2}(?![\dA-Za-z])|(?<!\d)[01]{8} [01]{8}(?!\d)/u,
} as const satisfies Record<string, RegExp>

function matches(pattern: RegExp): (text: string) => boolean {
  return (text) => text.search(pattern) !== -1
}

/** In the order in which they are asked. */
export const signs: readonly Sign[] = [
  {
    name: 'key block',
    example: '-----BEGIN RSA PRIVATE KEY-----',
    test: matches(patterns.keyBlock),
  },
  { name: 'header', example: 'Authorization: x', test: matches(patterns.header) },
  { name: 'password', example: 'the password is letmein', test: isPasswordGiven },
  { name: 'assignment', example: 'STRIPE_KEY=abc', test: isSecretAssigned },
  { name: 'address with login', example: 'ftp://joe:abc@host', test: matches(patterns.address) },
  {
    name: 'address with key',
    example: 'https://a.example/x?sig=abcdef',
    test: holdsAddressKey,
  },
  { name: 'mail and secret', example: 'joe@a.example:abc', test: isMailWithSecret },
  { name: 'line of a list', example: 'joe.doe:monkey', test: holdsPairLine },
  { name: 'record', example: 'see a.example:joe:monkey there', test: matches(patterns.triple) },
  { name: 'site line', example: 'a.example/in joe monkey', test: matches(patterns.siteLine) },
  { name: 'default login', example: 'try root:toor', test: matches(patterns.defaultLogin) },
  { name: 'login and more', example: 'login: joe / monkey', test: matches(patterns.loginAndMore) },
  { name: 'label', example: 'usuario x\nclave: monkey', test: matches(patterns.labelled) },
  {
    name: 'issued token',
    example: 'https://a.example/glpat-abcdefghijkl',
    test: matches(patterns.issued),
  },
  { name: 'command', example: 'sshpass -p monkey ssh a', test: matches(patterns.tool) },
  { name: 'dump', example: "insert into users values ('joe')", test: matches(patterns.dump) },
  { name: 'code', example: 'PIN 4711', test: matches(patterns.code) },
  { name: 'card', example: 'paid with 4556 7375 8689 9855', test: matches(patterns.card) },
  {
    name: 'seed words',
    example: 'abandon ability able about above absent absorb abstract absurd abuse access accident',
    test: matches(patterns.words),
  },
  { name: 'groups', example: '989001-569388-754049-454099', test: matches(patterns.groups) },
  {
    name: 'encoded',
    example: 'he wrote aHVudGVyMg== there',
    test: (text) => withoutThings(text).search(patterns.encoded) !== -1,
  },
  { name: 'quoted', example: 'he typed «Bienvenue1» twice', test: quotesOddWord },
  { name: 'near a word', example: 'log in as joe, then hunter2 works', test: isOddNearWord },
  { name: 'odd token', example: 'Summer2024!', test: (text) => holdsOdd(withoutThings(text), 2) },
]

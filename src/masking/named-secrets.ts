/**
 * Secrets behind a name: a word for a password with something behind it, a login with an odd token
 * beside it, a variable that is called like a secret.
 */
import { findMatches, holdsOdd, withoutThings } from './odd-tokens.ts'
import { secretKind } from './secret-names.ts'

/** Words for a password, by their stems, in the languages of the API's sources. */
const passwordWord = [
  String.raw`p[a@4][s$5]{2}[-_ ]?w(?:[o0]r[dt](?!less|los)(?:s|es?|en|et|nya)?|[oö]e?rtern?)|passwd|p[ .]a[ .]s[ .]s(?:[ .]w[ .]o[ .]r[ .]d)?`,
  String.raw`passw|pass-?phrases?|pass-?codes?|kenn?w[oö]rt(?:e[rs]|s)?|wachtwoord(?:en)?`,
  String.raw`(?<![\p{L}/])(?:pw|pwds?|pswd?|mdp|gesl[oa]|contra(?= del?\s| es\s)|cl?[oó]d(?:e d['’]|igo de |ice di? )acc[eè]s+o?|clave de acceso|zugangs\p{L}+|losung(?:swort)?|anmeldedaten|inloggegevens|app pass)(?!\p{L})`,
  String.raw`contrase[nñ]as?|senhas?(?!\p{L})|palavras?[- ]passe|mots? de passe|codes? secrets?`,
  String.raw`parol[ae] d['’]ordine|(?<!\p{L})ha(?:s[łl](?:o|a|em|ami|om|ach)|seł|śle)(?!\p{L})`,
  String.raw`(?<!\p{L})hesl[oaueěy]\p{L}{0,3}|l[öo]senord\p{L}*|adgangskode\p{L}*|kodeord\p{L}*`,
  String.raw`passord\p{L}*|salasan\p{L}*|jelsz[oó]\p{L}*|lozink\p{L}*|zapork\p{L}*`,
  String.raw`[şs]ifre(?:s[iı]|n[iı]z|m|ler\p{L}*|yi|de)?(?!\p{L})|m[ậa]t kh[ẩa]u|kata ?sandi`,
  String.raw`kata laluan|seed phrase|(?:recovery|secret|backup) (?:phrase|words)|mnemonic`,
  String.raw`code[- ]?words?|codew[oö]rte?r?|kenncodes?|(?:key|master|unlock|secret|login) ?phrase`,
  String.raw`(?:phrase|frase|mot|parola|palabra|palavra)s? (?:ma[iî]tresse|maestra|mestra|secr[eèé]t[eoa]?s?|segret[aeo]|de (?:paso|acceso|acesso))|tajn\p{L}+ słow\p{L}+`,
].join('|')
/** In other scripts; what follows in Latin letters is seldom a word. */
const foreignPasswordWord = [
  String.raw`парол\p{L}*|пассворд\p{L}*|(?<!\p{L})пасс?(?!\p{L})|(?:кодов|секретн)\p{L}+ (?:слов|фраз)\p{L}*|фраз\p{L}+ (?:для )?вход\p{L}+|κωδικ\p{L}{1,4}(?: πρόσβασης)?`,
  String.raw`συνθηματικ\p{L}*|סיסמ\p{L}*|पासवर्ड|পাসওয়ার্ড|รหัสผ่าน`,
  String.raw`كلم(?:ة|ات) ?(?:ال)?(?:مرور|سر)|رقم ?(?:ال)?سري|رمز ?(?:ال)?(?:عبور|مرور)|باسو?ورد`,
  String.raw`پسورد|گذرواژه|(?:کلمه|رمز)(?:\u200C| |ی )*(?:عبور|ورود)|密[码碼钥鑰](?![学學术術])|[口暗]令|[密暗][语語]|合い?言葉|暗号(?![化資通方技])|パス(?:ワード|コード|フレーズ)?|暗証番号|비밀 ?번호|비번|암호(?!화|학)|패스워드`,
].join('|')
/** Everyday words: only an odd token beside them is a sign. */
const nearbyWords = [
  String.raw`pass|secrets?|tokens?|keys?|creds?|credentials?|log[ -]?(?:in|ins|on)`,
  String.raw`user(?:name|id)?|usr|accounts?|acct|admin\p{L}*|root|clave|parola|chave|cl[ée]`,
  String.raw`schl[üu]ssel|zugang|acc[eè]so?|(?:digi|door|gate)codes?|credenziali|credenciales?`,
  String.raw`credenciais|identifiants?|usuario|usu[áa]rio|utilisateur|utente|benutzer\p{L}*`,
  String.raw`nutzer\p{L}*|u[żz]ytkownik|gebruiker\p{L}*|kullan[ıi]c[ıi]|klucz|konto|cuenta|compte`,
  String.raw`conta|логин\p{L}*|пользовател\p{L}*|уч[её]тк\p{L}*|доступ\p{L}*|ключ\p{L}*`,
  String.raw`токен\p{L}*|секрет\p{L}*|パスコード|wi-?fi|wlan|رمز`,
  String.raw`(?:just|then|and|to|you) type|enter(?! the)|dial|tipp?e?|eingeben|teclea|introdu\p{L}+|inserisci|digita`,
  String.raw`saisi[rs]\p{L}*|tape[rz]|insira|digite|введ\p{L}+|ввест[иі]|набер\p{L}+|wpis\p{L}*|ketik|masukkan|nhập`,
].join('|')
const nearbyParts = String.raw`[_-](?:pass|key|token|secret)(?!\p{L})|用户名|用戶名|账号|帳號|帐号|登录|ユーザー|ログイン|アカウント|アクセス|아이디|계정|로그인`
const password = new RegExp(`(?:${passwordWord})|(${foreignPasswordWord})`, 'giu')
const nearby = new RegExp(String.raw`(?<!\p{L})(?:${nearbyWords})(?!\p{L})|${nearbyParts}`, 'giu')

/** `password policy` and other things that are no password. */
const compoundPart = [
  'confirm|polic|manag|reset|spray|crack|guess|hash|protect|recover|stealer|stealing',
  'grabb|length|strength|field|prompt|rule|list|leak|breach|reuse|re-use|hygiene|chang',
  'rotat|expir|auth|based|less|vault|database|dump|login|attack|theft|input|box|form',
  'link|page|sharing|audit|generat|requirement|update|storage|combos?|wechsel|änder',
  'schutz|richtlini|abfrage|eingabe|argument|param|option|flag|file(?!\\p{L})|value(?!["\']?\\s?[:=])',
].join('|')
const compound = new RegExp(String.raw`^(?:['’]s)?(?:\.\p{Ll}|[-_ ]{0,2}(?:${compoundPart}))`, 'iu')
/** Behind `is`: what is said of a password that is not given. */
const attribute = wordsOf([
  String.raw`not|never|always|still|fine|gone|lost|same|also|only|too|very|so|required|optional|mandatory|weak|strong`,
  String.raw`safe|secure|in?valid|in?correct|wrong|enough|important|unique|short|long|longer`,
  String.raw`different|being|been|set|sent|kept|reset|shown|hidden|known|case|what|how|why|when`,
  String.raw`where|one|an?|her|his|their|my|our|your|its|seit|since|depuis|desde|at|in|on|for|from|nicht|falsch|obligator\p{L}+|obligatoire|falsa|non`,
  String.raw`pas|nie|не|verlopen|\p{L}+(?:ed|able|ible|[ai]d[oa]s?|[ae]t[ioa]|ée?s?|(?:by|ha|fåt)tt?a?|\p{L}+ats)`,
])
const given =
  /(?:[:=|→⇒➡👉「『\t]|[-=]>|\s[-–—]\s|(?:^|\p{L}["'”’]?[)\]]?)\s[“„«"'‘]|["'] ?, ?["'](?![\w-]{1,40}["']\s?:)|\(\s?["'])[\s|]*[\p{L}\p{N}\p{P}\p{S}]/u
const copula =
  /(?:^|\s)(?:is|was|are|ist|war|lautet|hei[ßs]t|es|era|est|é|è|jest|är|este|je|er|là|είναι|adalah|это|был|هي|هو|היא)\s+(?=\S)|^ha\S{2,4}\s(?:\S+\s){0,3}to\s|^salasana\S* on\s|c['’]est\s|[是为為]|(?:は|는|은|가|이)\s*(?=[「“"'!-~])(?!\d{1,2}\s?(?:자|글자|文字|[字位桁]))/iu
/** `hunter2 as the password`, `hunter2 is his password`. */
const namedBefore =
  /(?:^|\s)(?:as|is|was|als|comme|como|come|jako|olarak|som)\s(?:(?:a|an|the|my|his|her|their|your|our|one of|new|default|le|la|o|el|un|una|das|ein)\s){0,3}$/iu
/** After an English word for a password, these go on with a sentence. */
const goesOn = wordsOf([
  String.raw`and|or|in|on|for|to|of|with|from|by|at|that|which|who|when|while|if|must|should|can`,
  String.raw`can't|cannot|may|might|will|would|could|has|have|had|does|did|do|needs?|gets?|got`,
  String.raw`again|every|before|after|because|as|only|too|so|but|than|then|until|via|over|into`,
  String.raw`using|through|without|across|is|was|are|were|isn't|\p{L}+(?:ed|ing|ly)|und|oder|für`,
  String.raw`zu[mr]?|im|auf|mit|von|vom|der|die|das|des|wird|wurde|muss|soll|sollte|kann|hat|et`,
  String.raw`ou|pour|du|dans|sur|avec|doit|peut|qui|para|del|con|debe|puede|cada|que|do|da|em|com`,
  String.raw`deve|pode|per|di|nel|del|può|che|voor|van|op|met|moet|lub|dla|na|musi|jest|się|или`,
  String.raw`для|от|на|при|из|должен|может|после|через|не|и|nie|przez|por|lors|sans|bei|nach|bij`,
  String.raw`zonder|sem|senza|ve|veya|için|ile|erano|sono|foi|foram|eran|fueron|sont|sind|waren`,
  String.raw`werden|were|string|varchar|rồi|qu|dont|igen|wieder|encore|znovu|stays?|remains?|worse|better|больше|под|над|к|у|о|об|про|без`,
])
const plural =
  /(?:pass-? ?(?:words|codes|phrases)|w[öo]e?rter\p{L}*|rase[nñ]as|senhas|mots de passe|woorden|haseł|has[łl]a|ler\p{L}*|парол(?:и|і|ей|ям|ями|ях)|كلمات.*)$/iu
/** In these languages a word that stands behind is the password, unless the sentence goes on. */
const saidPlainly =
  /^(?:p[a@4]|pw|mot|mdp|contra|senha|wacht|kenn|has|пароль$|[şs]ifre|hesl|kode|l[öo]sen|recovery|mnem)/iu

/** Beside the word: `changed to monkey`, `same as the login`. */
const change = String.raw`(?:chang|reset|set|updat|geänd|gesetz|cambi|alter|zmieni|gewijzig|смен|помен|modif)\p{L}{0,6}`
const told = new RegExp(
  String.raw`(?:${change}\s(?:\S{1,20}\s){0,3}§(?:\s\S{1,20}){0,4}?|§(?:\s\p{L}{1,12}){0,3}?\s${change})\s(?:to|auf|en|em|para|a|in|na|naar|на)\s["'“«]?(?!(?:something|default|normal)(?!\p{L}))[^\s.,;]{4,}(?=["'”»]?\s*(?:[.,;!)\n]|$|(?:yesterday|today|now)(?!\p{L})))|§[^\n]{0,20}(?:same as|gleich wie|igual (?:a|que)|uguale a|такой же,? как|taki jak)\s(?:\p{L}{2,5}\s)?(?:log|user|логин|benutz|usu|utent)`,
  'iu',
)
/** `with password monkey`; else one word at the end of a clause, or one that is more than letters. */
const said =
  /(?:^|[\s,(])(?:use|using|with|try|mit|con|avec|com|und|and|y|et|e|и|с|(?:user|login)\S{0,6}\s\S{2,40})\s§\s(?<cued>\p{L}[^\s.,!?;]{2,})|§\s(?<alone>(?:\p{L}[^\s.,!?;]{2,}(?=\s*(?:[.,;!)\n–—-]|$)|\s(?:on|at|auf|for|works?|opens?|gets|lets|still|and (?:user|login))(?!\p{L}))|\p{L}+[^\s\p{L}.,!?;'’][^\s.,!?;]+))/iu

/** What goes on with a sentence behind a colon or a dash. */
const prose =
  /^[:–—\s-]{1,3}(?=[^\n]{0,60}?[\s](?:is|was|the|a|to|of|and|it|der|die|das|ist|und|le|la|les|est|de|et|que|el|y|é|o|het|een|jest|и|в|не|без|это)\s)(?:\p{L}[\p{L}'’]*,? ){5}/iu

/** Whether a word for a password comes with something that may be one. */
export function isPasswordGiven(text: string): boolean {
  return findMatches(text, password).some(({ index, 0: label, 1: foreign }) => {
    const before = text.slice(Math.max(0, index - 40), index)
    const after = text.slice(index + label.length, index + label.length + 80)
    if (told.test(`${before}§${after}`)) return true
    if (compound.test(after) || isReference(before, label, after)) return false
    if (isHeading(before, after)) return true
    const [sentence = ''] = /^[^\n.!。]*(?:[.!](?!\s)[^\n.!。]*)*/u.exec(after) ?? []
    if (plural.test(label)) return /^\s{0,3}[:=|]\s*(?!\*{3}|\d[\d.,]*[kKmM]?(?!\w))\S/u.test(after)
    const value = given.exec(sentence)
    if (value !== null && !(value.index > 2 && prose.test(sentence.slice(value.index))))
      return !placeholder.test(sentence.slice(value.index + value[0].length - 1).trim())
    if (foreign !== undefined && /^[^\n]{0,12}\n\s{0,3}\S{0,2}[:：]/u.test(after)) return true
    if (/^\s(?:ENC\s|\d\s)?\*{3}(?!\S)/u.test(sentence)) return false
    const rest = sentence.replace(/^["'”’»*_`)\]}>]{1,4}/u, '')
    const near = rest.slice(0, 50)
    const stated = copula.exec(near) ?? copula.exec(label + near)
    if (stated !== null && !attribute.test(rest.slice(stated.index + stated[0].length))) return true
    if (foreign !== undefined && /^[^\n。.]{0,6}[!-~]{3,}/u.test(rest)) return true
    if (/(?<![\d.#-]|port )(?!(?:19|20)\d\d(?!\d))\d{4,}(?![\d.-])/u.test(near)) return true
    if (isAnswered(after)) return true
    const { cued, alone: word = cued } = said.exec(`${before}§${rest}`)?.groups ?? {}
    const isSaid = word !== undefined && saidPlainly.test(label) && !goesOn.test(word)
    return namedBefore.test(before) || (isSaid && !attribute.test(word))
  })
}

/** Whether the word stands alone above something, or in the head of a table. */
function isHeading(before: string, after: string): boolean {
  const line = /[^\n]*$/u.exec(before)?.[0] ?? ''
  if (/^[^\p{L}\p{N}]*$/u.test(line) && /^[^\p{L}\p{N}\n*=,]*\n\s*\S/u.test(after)) return true
  if (/[{}]/u.test(line + (/^[^\n]*/u.exec(after)?.[0] ?? ''))) return false
  const delimiter = /([,;|\t])[\s"']*$/u.exec(line)?.[1] ?? /^["'\s]*?([,;|\t])/u.exec(after)?.[1]
  const [, below = ''] = /\n([^\n]+)/u.exec(after) ?? []
  return delimiter !== undefined && below.includes(delimiter)
}

/** Whether the next line answers a question for a password: `Ann: password?\nBob: tangerine`. */
function isAnswered(after: string): boolean {
  const [, answer = ''] =
    /^[^\n]{0,50}[?？؟][^\n]{0,8}\n(?:[^\n:>]{0,40}[:>]|\s?[-–—])\s?([^\n]+)/u.exec(after) ?? []
  return holdsOdd(answer, 1) || /\d{4}|^[\p{L}\p{M}_-]{5,}(?:\s\p{L}+)?$/u.test(answer)
}

/** Whether an odd token stands near a word for a password or a login. */
export function isOddNearWord(text: string): boolean {
  const bare = withoutThings(text)
  const near = (pattern: RegExp, before: number, behind: number): boolean =>
    findMatches(bare, pattern).some(({ index, 0: { length } }) =>
      holdsOdd(bare.slice(Math.max(0, index - before), index + length + behind), 1),
    )
  return near(password, 50, 70) || near(nearby, 25, 45)
}

const assignment =
  /(?<![\p{L}\p{M}\p{N}_$.-])([\p{L}\p{M}\p{N}_$.-]{2,60})(["'`\])*]{0,4}\s{0,3}(?:=>|:=|={1,3}|[:→])(?:\s{0,3}(?![\w.-]{1,40}\s?[:=])|[^\S\n]{0,3}))(["'`]?)(?=([^"'`\n]{1,80}))/gu
const placeholderForms = [
  String.raw`(?-i:(?:\p{Lu}{2,}_)+\p{Lu}{2,})["']?[,;]?$`,
  String.raw`\{["']type["']|(?:null|none|nil|yes|no|true|false|undefined|string|str|text|bytes|required|optional|n\/a)(?=["']?\s*(?:[,;)}\]|]|$))|!vault(?!\w)|(?:new_?|user_?)?password(?=\s*(?:[,;)]|or |\?\?|\|\|))`,
  String.raw`(?:user(?:name)?|login|e?-?mail|name|phone|ip|url|host|hash)(?=[:;|,])`,
  String.raw`(?:\*{3,}|•+|x{4,}|-+|\.{3})(?![^\s"',;)\]}])|(?:sha-?\d{1,3}|md5)["']?\s*(?:[,;)}\]]|$)|<[^<>\n]{1,60}>\s*$|\[[A-Z ]+\](?!\S)|\$\{|\{\{|%s|S-1-[\d-]+`,
  String.raw`["')\]]+(?:$|[.;,])|[\^~]?\d+\.\d+\.\d+(?:["']|$)|[\w$]{1,30}(?:\.[\w$]{1,30}){1,4}\((?:["'\w)]|$)|(?:bcrypt|getenv|env|input|(?:get|read|load|fetch|make|create|generate|find|request|parse|decode)[A-Z_]\w{0,40})\(|(?:await|new|yield) [\w$.]{1,60}\(`,
  String.raw`[\w$.]{1,60}\[(?:["']|$)|(?:req|request|self|this|form|state|config|cfg|settings|args|props|ctx|context|opts|options|params|body|session)\.[\w.]+(?![^\s;,)\]}])|\([^()]{0,60}\)(?:: [\w<>[\]]{1,40})? =>|[@:](?:hash|pass(?:word)?|pwd|login|user|token)(?!\w)|\/(?:srv|home|root|var|opt|tmp|usr|etc|run|app|mnt)\/`,
].join('|')
const placeholder = new RegExp(`^["']?(?:${placeholderForms})`, 'iu')

const reference =
  /§["']\s?(?:[:=]>?\s?[A-Za-z_]+(?:\.[A-Za-z_]+)*\s?[,)}]|:\s?\{\s?["'](?:type|\$|min)|,\s?["'](?!val|content|text|data|answer)[\w-]{1,40}["']\s?:)|(?:[\w)\]](?:->|\.)§(?:[,;).\]]|\s?[!=]==?)|(?:get|read|load|fetch|random|generate)_?§\(|(?:check|verify|reset|set|change|update|validate|hash|compare)_?§\((?!\s?["']))|§(?:&|\)? ?->)/iu

/** Whether source code names a secret and no value: `password=password`, `user.password)`. */
function isReference(before: string, name: string, behind: string): boolean {
  if (reference.test(`${before}§${behind}`)) return true
  return /^=([\w.]+)[,)]/u.exec(behind)?.[1]?.split('.').at(-1) === name
}

/** Names of secrets that are everyday words as well. */
const everyday =
  /^(?:tokens?|secrets?|keys?|pass|passes|pin|pan|sid|seed|hash(?:es)?|bearer|clave|parola|authorization|cookies?|sess|session|ключ|токен\p{L}?)$/iu

const defined = /(?<!\p{L})(?:#define|ENV|ARG|setx?) ([\w.]{2,60})[ \t]+["']?[^\s"'=*$]/gu

/** Whether a name of a secret is given a value: `DB_PASSWORD=…`, `"apiKey": "…"`. */
export function isSecretAssigned(text: string): boolean {
  if (findMatches(text, defined).some(([, name = '']) => secretKind(name) !== null)) return true
  return findMatches(text, assignment).some((match) => {
    const [, name = '', sign = '', quote = '', value = ''] = match
    const behind = text.slice(match.index + name.length, match.index + name.length + 90)
    if (placeholder.test(value.trim()) || isReference('', name, behind)) return false
    if (/^(?:\/\/|\d[;,]?$|\d{5,9}; ?rev)|^(?:\p{Lu}?\p{Ll}+ ){5}/u.test(value)) return false
    if (secretKind(name) === null) return false
    if (/s$/iu.test(name) && /^\d[\d.,]*[kKmM]?(?![\w.])/u.test(value)) return false
    if (!everyday.test(name)) return true
    return quote !== '' || sign.trim() !== ':' || holdsOdd(value, 1) || /\d{3}/u.test(value)
  })
}

/** Matches a text that begins with one of these words. */
function wordsOf(words: readonly string[]): RegExp {
  return new RegExp(`^(?:${words.join('|')})(?![\\p{L}_-])`, 'iu')
}

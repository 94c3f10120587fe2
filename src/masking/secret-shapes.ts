/**
 * Secrets that are recognised by their own shape: tokens, payment cards, private keys. The shapes
 * are documented by their issuers, or listed in the rule sets of secret scanners (gitleaks,
 * trufflehog). Lengths are lower bounds, so that a truncated secret is found, too.
 */

/** A part of a text that is a secret. */
export interface Span {
  from: number
  to: number
  /** Neither its first nor its last character is shown. */
  hidden?: boolean
}

/**
 * Returns every match of a global pattern that matches no empty text. Unlike `matchAll` it copies no
 * pattern: most texts are short and hold nothing, and the copy costs ten times the look.
 */
export function findMatches(text: string, pattern: RegExp): RegExpExecArray[] {
  const found: RegExpExecArray[] = []
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) found.push(match)
  return found
}

/** Returns the text before a position, at most `length` code units. */
export function textBefore(text: string, at: number, length: number): string {
  return text.slice(Math.max(0, at - length), at)
}

/**
 * Returns a function that finds the next match of the global `pattern` from a position on.
 * Positions must not decrease; then all calls together take time linear in the text.
 */
export function endsOf(text: string, pattern: RegExp): (at: number) => number {
  let known = -1
  return (at) => {
    if (at <= known) return known
    pattern.lastIndex = at
    known = pattern.exec(text)?.index ?? text.length
    return known
  }
}

const word = '[A-Za-z0-9]'
const wordy = String.raw`[\w-]`

/** Each with its source. `anySecretShape` adds that no letter or digit comes before it. */
const secretShapes: readonly string[] = [
  // AWS access key id: AWS IAM, unique identifiers
  '(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{12,}',
  // AWS Bedrock key: gitleaks
  'ABSK[A-Za-z0-9+/]{40,}=*',
  // GitHub token: GitHub, token formats
  `gh[pousr]_${word}{12,}`,
  // GitHub fine-grained token: GitHub, token formats
  String.raw`github_pat_\w{12,}`,
  // GitLab token: GitLab, token prefixes
  `gl(?:pat|dt|ptt|rt|cbt|ft|imt|agent|oas|soat|ffct)-${wordy}{12,}(?:\\.${wordy}+)*`,
  // GitLab runner registration: GitLab, token prefixes
  `GR1348941${wordy}{12,}`,
  // Slack token: Slack, token types
  'xox[abeoprs](?:\\.xox[bp])?-[A-Za-z0-9-]{10,}',
  // Slack app token: Slack, token types
  String.raw`xapp-\d-[A-Za-z0-9-]{10,}`,
  // Stripe key: Stripe, API keys
  `(?:(?:sk|rk)_(?:live|test|prod)_|whsec_)${word}{12,}`,
  // Google API key: Google Cloud, API keys
  `AIza${wordy}{20,}`,
  // Google OAuth token: Google Identity, access tokens
  String.raw`ya29\.[\w-]{20,}`,
  // Google OAuth client secret: trufflehog
  `GOCSPX-${wordy}{12,}`,
  // npm token: npm, access tokens
  `npm_${word}{16,}`,
  // PyPI token: PyPI, API tokens
  `pypi-${wordy}{30,}`,
  // RubyGems key: RubyGems, API keys
  'rubygems_[a-f0-9]{20,}',
  // Docker token: Docker Hub, access tokens
  `dckr_(?:pat|oat)_${wordy}{12,}`,
  // OpenAI key: gitleaks
  `sk-(?=[\\w-]{0,40}\\d)(?:proj-|svcacct-|admin-|ant-[a-z0-9]+-|or-v1-)?${wordy}{20,}`,
  // Hugging Face token: Hugging Face, user access tokens
  `(?:hf|api_org)_${word}{20,}`,
  // Perplexity key: gitleaks
  `pplx-${word}{20,}`,
  // Groq key: trufflehog
  `gsk_${word}{20,}`,
  // Twilio key: Twilio, API keys
  'SK[0-9a-f]{32}',
  // SendGrid key: SendGrid, API keys
  String.raw`SG\.[\w-]{12,}(?:\.[\w-]+)?`,
  // Mailgun key: gitleaks
  '(?:key|pubkey)-[0-9a-f]{32}',
  // Mailchimp key: gitleaks
  String.raw`[0-9a-f]{32}-us\d{1,2}(?!\w)`,
  // Brevo key: gitleaks
  `xkeysib-[a-f0-9]{20,}(?:-${word}+)?`,
  // Square token: gitleaks
  `(?:EAAA|sq0(?:atp|csp|idp)-)${wordy}{22,}`,
  // Shopify token: Shopify, access tokens
  'shp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,}',
  // DigitalOcean token: DigitalOcean, API tokens
  'do[opr]_v1_[a-f0-9]{20,}',
  // Databricks token: gitleaks
  String.raw`dapi[a-f0-9]{32}(?:-\d)?`,
  // Grafana token: Grafana, service accounts
  'gl(?:c|sa)_[A-Za-z0-9+/_]{20,}=*',
  // HashiCorp Vault token: Vault, tokens
  String.raw`hv[sbr]\.[\w-]{20,}`,
  // Terraform token: gitleaks
  String.raw`[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{20,}`,
  // Doppler token: gitleaks
  String.raw`dp\.[a-z]{2,5}\.[A-Za-z0-9]{20,}`,
  // Dynatrace token: Dynatrace, token format
  String.raw`dt0[a-z]\d\d\.[A-Z0-9]{24}(?:\.[A-Z0-9]+)?`,
  // Postman key: gitleaks
  'PMAK-[a-f0-9]{20,}(?:-[a-f0-9]+)?',
  // Linear key: gitleaks
  `lin_(?:api|oauth)_${word}{16,}`,
  // Notion token: Notion, authorization
  `(?:ntn|secret)_${word}{40,}`,
  // Pulumi token: gitleaks
  'pul-[a-f0-9]{20,}',
  // PlanetScale secret: gitleaks
  String.raw`pscale_(?:tkn|oauth|pw)_[\w=.-]{16,}`,
  // Supabase token: Supabase, API keys
  'sb[ps]_(?:secret_)?[A-Za-z0-9_]{20,}',
  // Sentry token: gitleaks
  String.raw`sntry[su]_[\w+/=]{20,}`,
  // New Relic key: New Relic, API keys
  'NRAK-[A-Z0-9]{20,}',
  // Airtable token: gitleaks
  `pat${word}{14}\\.[a-f0-9]{20,}`,
  // Atlassian token: trufflehog
  'ATATT3[A-Za-z0-9_=-]{20,}',
  // Heroku key: Heroku, token format
  `HRKU-${wordy}{20,}`,
  // Facebook token: gitleaks
  `EAA[CM]${word}{40,}`,
  // Alibaba key id: gitleaks
  'LTAI[A-Za-z0-9]{16,}',
  // 1Password token: gitleaks
  'ops_eyJ[A-Za-z0-9+/]{20,}=*',
  // 1Password secret key: 1Password, Secret Key
  'A3-[A-Z0-9]{6}-[A-Z0-9]{5,11}(?:-[A-Z0-9]{5}){2,4}',
  // age key: age, format
  'AGE-SECRET-KEY-1[0-9A-Z]{20,}',
  // Artifactory key: gitleaks
  `(?:AKCp|cmVmd)${word}{40,}`,
  // NuGet key: trufflehog
  'oy2[a-z0-9]{43}',
  // OpenShift token: gitleaks
  `sha256~${wordy}{20,}`,
  // Azure client secret: gitleaks
  String.raw`[\w~.-]{3}\dQ~[\w~.-]{20,}`,
  // Telegram bot token: Telegram, Bot API
  `\\d{8,10}:AA${wordy}{30,}`,
  // Discord token: trufflehog
  `[MNO][A-Za-z0-9_-]{23,27}\\.${wordy}{6}\\.${wordy}{27,}`,
  // JSON Web Token: RFC 7519; base64url of {"
  `eyJ[A-Za-z0-9_-]{14,}(?:\\.[A-Za-z0-9_-]*){0,4}`,
  // extended private key: BIP 32
  '[xyzt]prv[1-9A-HJ-NP-Za-km-z]{60,}',
  // hash of crypt(3): crypt(5), PHC string format
  String.raw`\$(?:2[abxy]?|[156y]|argon2(?:id?|d)|apr1|P|H|sha1|md5|scrypt|pbkdf2[-\w]*)\$[^\s:,;"'|<>]{8,}`,
  // hash of Django: Django, password storage
  String.raw`(?:pbkdf2_sha\d+|bcrypt_sha256|argon2|scrypt)\$[^\s:;"'|<>]{16,}`,
  // hash of LDAP: RFC 2307
  String.raw`\{(?:S?SHA(?:\d{3})?|S?MD5|CRYPT)\}[A-Za-z0-9+/=$.]{16,}`,
  // answer of NTLM: NetNTLMv2, hashcat mode 5600
  '(?<=:)[0-9a-fA-F]{16}:[0-9a-fA-F]{32}:[0-9a-fA-F]{8,}',
  // hashes of Windows: pwdump format
  '(?<=:)[0-9a-fA-F]{32}:[0-9a-fA-F]{32}(?=:)',
]

/** Webhook addresses whose path is the secret; the host stays. */
const secretPaths =
  /(?<=hooks\.slack\.com\/(?:services|workflows|triggers)\/|discord(?:app)?\.com\/api\/webhooks\/|\.webhook\.office\.com\/webhookb2\/|api\.telegram\.org\/bot)[^\s"'<>\\]{8,300}/gu

const anySecretShape = new RegExp(`(?<![A-Za-z0-9])(?:${secretShapes.join('|')})`, 'gu')

/** A payment card's number, followed by its expiry and code. */
const cardDump = /(?<![\d.])(\d{13,19})([|:;,/ ]\d{1,2}[|:;,/ ]\d{2,4}[|:;,/ ])(\d{3,4})(?!\d)/gu

/** A card number behind a label, or printed in four groups. */
const wholeCard =
  /(?:\b(?:credit ?card|cc|pan|card|card ?(?:number|num|no)|kreditkarte|kartennummer|carte|tarjeta)["'#]{0,2}\s{0,3}[:=]\s{0,3}["']?(?=\d(?:[ -]?\d){12,18}(?![ .-]?\d))|(?<![\d.-]|\d )(?=[2-6]\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?![ .-]?\d)))(\d(?:[ -]?\d){12,18})/giu

const pemBegin = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/gu
const pemEnd = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/gu
const puttyLines = /Private-Lines: ?\d{1,4}(?:\r?\n|\\n)/gu
/** A line of base64, for a key whose BEGIN line is cut off. */
const base64Line = /^[A-Za-z0-9+/=]{1,80}$/u
const maxKeyLength = 20_000

/** Finds secrets of a known shape. Linear in the length of the text. */
export function shapeSpans(text: string): Span[] {
  return [...tokenSpans(text), ...cardSpans(text), ...pemSpans(text), ...puttySpans(text)]
}

function tokenSpans(text: string): Span[] {
  return [anySecretShape, secretPaths].flatMap((pattern) =>
    findMatches(text, pattern).map(({ index, 0: { length } }) => ({
      from: index,
      to: index + length,
    })),
  )
}

function cardSpans(text: string): Span[] {
  const whole = findMatches(text, wholeCard).flatMap(({ index, 0: match, 2: number = '' }) => {
    const from = index + match.length - number.length
    return hasCardSum(number) ? [{ from, to: from + number.length }] : []
  })
  const dumped = findMatches(text, cardDump).flatMap(
    ({ index, 1: number = '', 2: expiry = '', 3: code = '' }) => {
      const codeAt = index + number.length + expiry.length
      return [
        { from: index, to: index + number.length },
        { from: codeAt, to: codeAt + code.length },
      ]
    },
  )
  return [...whole, ...dumped]
}

/** Verifies the check digit of ISO/IEC 7812 (Luhn). */
function hasCardSum(number: string): boolean {
  const digits = Array.from(number.replaceAll(/\D/gu, ''), Number).toReversed()
  const sum = digits.reduce((all, digit, at) => {
    const weighed = at % 2 === 0 ? digit : digit * 2
    return all + (weighed > 9 ? weighed - 9 : weighed)
  }, 0)
  return sum % 10 === 0
}

/** What is between BEGIN and END (RFC 7468), or behind BEGIN if END is cut off. */
function pemSpans(text: string): Span[] {
  const spans: Span[] = []
  const ends = findMatches(text, pemEnd).map(({ index }) => index)
  let at = 0
  for (const { index, 0: begin } of findMatches(text, pemBegin)) {
    const from = index + begin.length
    for (; (ends[at] ?? from) < from; at += 1) spans.push(...headlessSpan(text, ends[at] ?? from))
    if (from < (spans.at(-1)?.to ?? 0)) continue
    spans.push({ from, to: ends[at] ?? text.length, hidden: true })
    at += 1
  }
  return [...spans, ...ends.slice(at).flatMap((end) => headlessSpan(text, end))]
}

/** The lines of base64 before an END without BEGIN. */
function headlessSpan(text: string, end: number): Span[] {
  const lines = textBefore(text, end, maxKeyLength).split('\n')
  let from = end - (lines.pop() ?? '').length
  for (const line of lines.toReversed()) {
    if (!base64Line.test(line.trim())) break
    from -= line.length + 1
  }
  return [{ from, to: end, hidden: true }]
}

function puttySpans(text: string): Span[] {
  return findMatches(text, puttyLines).map(({ index, 0: head }) => {
    const from = index + head.length
    const near = text.slice(from, from + maxKeyLength)
    const macAt = near.indexOf('Private-MAC')
    return { from, to: from + (macAt === -1 ? near.length : macAt), hidden: true }
  })
}

/**
 * Secrets that are known by their own shape, wherever they stand. The shapes are facts that their
 * issuers document, or that the rule sets of secret scanners (gitleaks, trufflehog) list; lengths are
 * lower bounds, so that one which a cut shortened is found as well.
 */

/** A part of a text that is a secret. */
export interface Span {
  from: number
  to: number
  /** Neither its first nor its last character is shown. */
  hidden?: boolean
}

interface Shape {
  name: string
  /** Anchored by `combined`: no letter or digit stands before it. */
  pattern: string
  source: string
}

const word = '[A-Za-z0-9]'
const wordy = String.raw`[\w-]`

const secretShapes: readonly Shape[] = [
  {
    name: 'AWS access key id',
    pattern: '(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{12,}',
    source: 'AWS IAM, unique identifiers',
  },
  { name: 'AWS Bedrock key', pattern: 'ABSK[A-Za-z0-9+/]{40,}=*', source: 'gitleaks' },
  { name: 'GitHub token', pattern: `gh[pousr]_${word}{12,}`, source: 'GitHub, token formats' },
  {
    name: 'GitHub fine-grained token',
    pattern: String.raw`github_pat_\w{12,}`,
    source: 'GitHub, token formats',
  },
  {
    name: 'GitLab token',
    pattern: `gl(?:pat|dt|ptt|rt|cbt|ft|imt|agent|oas|soat|ffct)-${wordy}{12,}(?:\\.${wordy}+)*`,
    source: 'GitLab, token prefixes',
  },
  {
    name: 'GitLab runner registration',
    pattern: `GR1348941${wordy}{12,}`,
    source: 'GitLab, token prefixes',
  },
  {
    name: 'Slack token',
    pattern: 'xox[abeoprs](?:\\.xox[bp])?-[A-Za-z0-9-]{10,}',
    source: 'Slack, token types',
  },
  {
    name: 'Slack app token',
    pattern: String.raw`xapp-\d-[A-Za-z0-9-]{10,}`,
    source: 'Slack, token types',
  },
  {
    name: 'Stripe key',
    pattern: `(?:(?:sk|rk)_(?:live|test|prod)_|whsec_)${word}{12,}`,
    source: 'Stripe, API keys',
  },
  { name: 'Google API key', pattern: `AIza${wordy}{20,}`, source: 'Google Cloud, API keys' },
  {
    name: 'Google OAuth token',
    pattern: String.raw`ya29\.[\w-]{20,}`,
    source: 'Google Identity, access tokens',
  },
  { name: 'Google OAuth client secret', pattern: `GOCSPX-${wordy}{12,}`, source: 'trufflehog' },
  { name: 'npm token', pattern: `npm_${word}{16,}`, source: 'npm, access tokens' },
  { name: 'PyPI token', pattern: `pypi-${wordy}{30,}`, source: 'PyPI, API tokens' },
  { name: 'RubyGems key', pattern: 'rubygems_[a-f0-9]{20,}', source: 'RubyGems, API keys' },
  {
    name: 'Docker token',
    pattern: `dckr_(?:pat|oat)_${wordy}{12,}`,
    source: 'Docker Hub, access tokens',
  },
  {
    name: 'OpenAI key',
    pattern: `sk-(?=[\\w-]{0,40}\\d)(?:proj-|svcacct-|admin-|ant-[a-z0-9]+-|or-v1-)?${wordy}{20,}`,
    source: 'gitleaks',
  },
  {
    name: 'Hugging Face token',
    pattern: `(?:hf|api_org)_${word}{20,}`,
    source: 'Hugging Face, user access tokens',
  },
  { name: 'Perplexity key', pattern: `pplx-${word}{20,}`, source: 'gitleaks' },
  { name: 'Groq key', pattern: `gsk_${word}{20,}`, source: 'trufflehog' },
  { name: 'Twilio key', pattern: 'SK[0-9a-f]{32}', source: 'Twilio, API keys' },
  {
    name: 'SendGrid key',
    pattern: String.raw`SG\.[\w-]{12,}(?:\.[\w-]+)?`,
    source: 'SendGrid, API keys',
  },
  { name: 'Mailgun key', pattern: '(?:key|pubkey)-[0-9a-f]{32}', source: 'gitleaks' },
  { name: 'Mailchimp key', pattern: String.raw`[0-9a-f]{32}-us\d{1,2}(?!\w)`, source: 'gitleaks' },
  { name: 'Brevo key', pattern: `xkeysib-[a-f0-9]{20,}(?:-${word}+)?`, source: 'gitleaks' },
  {
    name: 'Square token',
    pattern: `(?:EAAA|sq0(?:atp|csp|idp)-)${wordy}{22,}`,
    source: 'gitleaks',
  },
  {
    name: 'Shopify token',
    pattern: 'shp(?:at|ca|pa|ss)_[a-fA-F0-9]{16,}',
    source: 'Shopify, access tokens',
  },
  {
    name: 'DigitalOcean token',
    pattern: 'do[opr]_v1_[a-f0-9]{20,}',
    source: 'DigitalOcean, API tokens',
  },
  { name: 'Databricks token', pattern: String.raw`dapi[a-f0-9]{32}(?:-\d)?`, source: 'gitleaks' },
  {
    name: 'Grafana token',
    pattern: 'gl(?:c|sa)_[A-Za-z0-9+/_]{20,}=*',
    source: 'Grafana, service accounts',
  },
  {
    name: 'HashiCorp Vault token',
    pattern: String.raw`hv[sbr]\.[\w-]{20,}`,
    source: 'Vault, tokens',
  },
  {
    name: 'Terraform token',
    pattern: String.raw`[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{20,}`,
    source: 'gitleaks',
  },
  {
    name: 'Doppler token',
    pattern: String.raw`dp\.[a-z]{2,5}\.[A-Za-z0-9]{20,}`,
    source: 'gitleaks',
  },
  {
    name: 'Dynatrace token',
    pattern: String.raw`dt0[a-z]\d\d\.[A-Z0-9]{24}(?:\.[A-Z0-9]+)?`,
    source: 'Dynatrace, token format',
  },
  { name: 'Postman key', pattern: 'PMAK-[a-f0-9]{20,}(?:-[a-f0-9]+)?', source: 'gitleaks' },
  { name: 'Linear key', pattern: `lin_(?:api|oauth)_${word}{16,}`, source: 'gitleaks' },
  { name: 'Notion token', pattern: `(?:ntn|secret)_${word}{40,}`, source: 'Notion, authorization' },
  { name: 'Pulumi token', pattern: 'pul-[a-f0-9]{20,}', source: 'gitleaks' },
  {
    name: 'PlanetScale secret',
    pattern: String.raw`pscale_(?:tkn|oauth|pw)_[\w=.-]{16,}`,
    source: 'gitleaks',
  },
  {
    name: 'Supabase token',
    pattern: 'sb[ps]_(?:secret_)?[A-Za-z0-9_]{20,}',
    source: 'Supabase, API keys',
  },
  { name: 'Sentry token', pattern: String.raw`sntry[su]_[\w+/=]{20,}`, source: 'gitleaks' },
  { name: 'New Relic key', pattern: 'NRAK-[A-Z0-9]{20,}', source: 'New Relic, API keys' },
  { name: 'Airtable token', pattern: `pat${word}{14}\\.[a-f0-9]{20,}`, source: 'gitleaks' },
  { name: 'Atlassian token', pattern: 'ATATT3[A-Za-z0-9_=-]{20,}', source: 'trufflehog' },
  { name: 'Heroku key', pattern: `HRKU-${wordy}{20,}`, source: 'Heroku, token format' },
  { name: 'Facebook token', pattern: `EAA[CM]${word}{40,}`, source: 'gitleaks' },
  { name: 'Alibaba key id', pattern: 'LTAI[A-Za-z0-9]{16,}', source: 'gitleaks' },
  { name: '1Password token', pattern: 'ops_eyJ[A-Za-z0-9+/]{20,}=*', source: 'gitleaks' },
  {
    name: '1Password secret key',
    pattern: 'A3-[A-Z0-9]{6}-[A-Z0-9]{5,11}(?:-[A-Z0-9]{5}){2,4}',
    source: '1Password, Secret Key',
  },
  { name: 'age key', pattern: 'AGE-SECRET-KEY-1[0-9A-Z]{20,}', source: 'age, format' },
  { name: 'Artifactory key', pattern: `(?:AKCp|cmVmd)${word}{40,}`, source: 'gitleaks' },
  { name: 'NuGet key', pattern: 'oy2[a-z0-9]{43}', source: 'trufflehog' },
  { name: 'OpenShift token', pattern: `sha256~${wordy}{20,}`, source: 'gitleaks' },
  {
    name: 'Azure client secret',
    pattern: String.raw`[\w~.-]{3}\dQ~[\w~.-]{20,}`,
    source: 'gitleaks',
  },
  { name: 'Telegram bot token', pattern: `\\d{8,10}:AA${wordy}{30,}`, source: 'Telegram, Bot API' },
  {
    name: 'Discord token',
    pattern: `[MNO][A-Za-z0-9_-]{23,27}\\.${wordy}{6}\\.${wordy}{27,}`,
    source: 'trufflehog',
  },
  {
    name: 'JSON Web Token',
    pattern: `eyJ[A-Za-z0-9_-]{14,}(?:\\.[A-Za-z0-9_-]*){0,4}`,
    source: 'RFC 7519; base64url of {"',
  },
  { name: 'extended private key', pattern: '[xyzt]prv[1-9A-HJ-NP-Za-km-z]{60,}', source: 'BIP 32' },
  {
    name: 'hash of crypt(3)',
    pattern: String.raw`\$(?:2[abxy]?|[156y]|argon2(?:id?|d)|apr1|P|H|sha1|md5|scrypt|pbkdf2[-\w]*)\$[^\s:,;"'|<>]{8,}`,
    source: 'crypt(5), PHC string format',
  },
  {
    name: 'hash of Django',
    pattern: String.raw`(?:pbkdf2_sha\d+|bcrypt_sha256|argon2|scrypt)\$[^\s:;"'|<>]{16,}`,
    source: 'Django, password storage',
  },
  {
    name: 'hash of LDAP',
    pattern: String.raw`\{(?:S?SHA(?:\d{3})?|S?MD5|CRYPT)\}[A-Za-z0-9+/=$.]{16,}`,
    source: 'RFC 2307',
  },
  {
    name: 'answer of NTLM',
    pattern: '(?<=:)[0-9a-fA-F]{16}:[0-9a-fA-F]{32}:[0-9a-fA-F]{8,}',
    source: 'NetNTLMv2, hashcat mode 5600',
  },
  {
    name: 'hashes of Windows',
    pattern: '(?<=:)[0-9a-fA-F]{32}:[0-9a-fA-F]{32}(?=:)',
    source: 'pwdump format',
  },
]

/** Webhook addresses whose path is the key; the host stays. */
const secretPaths =
  /(?<=hooks\.slack\.com\/(?:services|workflows|triggers)\/|discord(?:app)?\.com\/api\/webhooks\/|\.webhook\.office\.com\/webhookb2\/|api\.telegram\.org\/bot)[^\s"'<>\\]{8,300}/gu

const combined = new RegExp(
  `(?<![A-Za-z0-9])(?:${secretShapes.map(({ pattern }) => pattern).join('|')})`,
  'gu',
)

/** A number of a payment card before its expiry and code. */
const cardDump = /(?<![\d.])(\d{13,19})([|:;,/ ]\d{1,2}[|:;,/ ]\d{2,4}[|:;,/ ])(\d{3,4})(?!\d)/gu

/** Behind a label, or in the four groups in which it is printed. */
const wholeCard =
  /(?:\b(?:credit ?card|cc|pan|card|card ?(?:number|num|no)|kreditkarte|kartennummer|carte|tarjeta)["'#]{0,2}\s{0,3}[:=]\s{0,3}["']?(?=\d(?:[ -]?\d){12,18}(?![ .-]?\d))|(?<![\d.-]|\d )(?=[2-6]\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?![ .-]?\d)))(\d(?:[ -]?\d){12,18})/giu

const pemBegin = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/gu
const pemEnd = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/gu
const puttyLines = /Private-Lines: ?\d{1,4}(?:\r?\n|\\n)/gu
/** A line of base64, as it stands before an END whose BEGIN is cut off. */
const base64Line = /^[A-Za-z0-9+/=]{1,80}$/u
const longestKey = 20_000

/** Where secrets of a known shape stand. Linear in the length of the text. */
export function shapeSpans(text: string): Span[] {
  return [...tokenSpans(text), ...cardSpans(text), ...pemSpans(text), ...puttySpans(text)]
}

function tokenSpans(text: string): Span[] {
  return [combined, secretPaths].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(({ index, 0: { length } }) => ({
      from: index,
      to: index + length,
    })),
  )
}

function cardSpans(text: string): Span[] {
  const whole = [...text.matchAll(wholeCard)].flatMap(({ index, 0: match, 2: number = '' }) => {
    const from = index + match.length - number.length
    return hasCardSum(number) ? [{ from, to: from + number.length }] : []
  })
  const dumped = [...text.matchAll(cardDump)].flatMap(
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

/** The check digit of ISO/IEC 7812 (Luhn). */
function hasCardSum(number: string): boolean {
  const digits = Array.from(number.replaceAll(/\D/gu, ''), Number).toReversed()
  const sum = digits.reduce((all, digit, at) => {
    const weighed = at % 2 === 0 ? digit : digit * 2
    return all + (weighed > 9 ? weighed - 9 : weighed)
  }, 0)
  return sum % 10 === 0
}

/** RFC 7468: what stands between BEGIN and END; to the end of the text where END is cut off. */
function pemSpans(text: string): Span[] {
  const spans: Span[] = []
  const ends = [...text.matchAll(pemEnd)].map(({ index }) => index)
  let at = 0
  for (const { index, 0: begin } of text.matchAll(pemBegin)) {
    const from = index + begin.length
    for (; (ends[at] ?? from) < from; at += 1) spans.push(...headlessSpan(text, ends[at] ?? from))
    if (from < (spans.at(-1)?.to ?? 0)) continue
    spans.push({ from, to: ends[at] ?? text.length, hidden: true })
    at += 1
  }
  return [...spans, ...ends.slice(at).flatMap((end) => headlessSpan(text, end))]
}

/** The lines of base64 right before an END without BEGIN. */
function headlessSpan(text: string, end: number): Span[] {
  const lines = text.slice(Math.max(0, end - longestKey), end).split('\n')
  let from = end - (lines.pop() ?? '').length
  for (const line of lines.toReversed()) {
    if (!base64Line.test(line.trim())) break
    from -= line.length + 1
  }
  return [{ from: Math.max(from, 0), to: end, hidden: true }]
}

function puttySpans(text: string): Span[] {
  return [...text.matchAll(puttyLines)].map(({ index, 0: head }) => {
    const from = index + head.length
    const near = text.slice(from, from + longestKey)
    const macAt = near.indexOf('Private-MAC')
    return { from, to: from + (macAt === -1 ? near.length : macAt), hidden: true }
  })
}

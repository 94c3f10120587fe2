/** Looks for secrets in whatever was said or stored, in every spelling in which they could be read back. */

export interface Output {
  /** Where it was found, in words: `log`, `explain paste/x/1`. */
  where: string
  content: string | Uint8Array
}

/** `apiKey in log`, each once. */
export function scanForSecrets(
  outputs: readonly Output[],
  secrets: Readonly<Record<string, string>>,
): string[] {
  const spelt = Object.entries(secrets).map(([name, secret]) => ({
    name,
    forms: spellings(secret),
  }))
  const found = outputs.flatMap(({ where, content }) => {
    const text = typeof content === 'string' ? content : Buffer.from(content).toString('latin1')
    const folded = text.toLowerCase()
    return spelt
      .filter(({ forms }) =>
        forms.some(({ form, anyCase }) => (anyCase ? folded : text).includes(form)),
      )
      .map(({ name }) => `${name} in ${where}`)
  })
  return [...new Set(found)]
}

interface Spelling {
  form: string
  /** The form is in lower case, and so is what it is looked for in. */
  anyCase?: boolean
}

function spellings(secret: string): Spelling[] {
  const plain = [
    secret,
    inJson(secret),
    inJson(inJson(secret)),
    inHtml(secret),
    inUrl(secret),
    Buffer.from(secret).toString('latin1'),
    ...inBase64(secret),
  ]
  const folded = [
    encodeURIComponent(secret),
    encodeURI(secret),
    new URLSearchParams([['', secret]]).toString().slice(1),
    Buffer.from(secret).toString('hex'),
  ].map((form) => form.toLowerCase())
  return [
    ...[...new Set(plain)].map((form) => ({ form })),
    ...[...new Set(folded)].map((form) => ({ form, anyCase: true })),
  ]
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

function inHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}

/** As the parser of URLs writes the password of an address. */
function inUrl(text: string): string {
  return Object.assign(new URL('http://host'), { username: 'u', password: text }).password
}

/** Three bytes make four letters: by what stands before it, a text reads in three ways. So for base64url. */
function inBase64(text: string): string[] {
  const bytes = Buffer.from(text)
  const standard = [0, 1, 2].map((before) => {
    const letters = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    const isWhole = (before + bytes.length) % 3 === 0
    return letters.slice(before === 0 ? 0 : before + 1, isWhole ? undefined : -1)
  })
  return standard.flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')])
}

/** HTML for pages that show messages: every value is escaped but what this made itself. */

/** HTML that may stand in HTML as it is. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Value = Html | string | number | readonly Html[]

/** A template whose values are escaped, and fit for text and for quoted attributes. */
export function markup(parts: TemplateStringsArray, ...values: Value[]): Html {
  const texts = values.map(toText)
  return new Html(parts.map((part, at) => `${part}${texts[at] ?? ''}`).join(''))
}

function toText(value: Value): string {
  if (value instanceof Html) return value.text
  if (typeof value === 'object') return value.map(({ text }) => text).join('')
  return escapeHtml(String(value))
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')
}

/** A part of a message: an object of the JSON that was posted. */
export type Part = Readonly<Record<string, unknown>>

export function asPart(value: unknown): Part {
  return typeof value === 'object' && value !== null ? (value as Part) : {}
}

export function asParts(value: unknown): Part[] {
  return Array.isArray(value) ? value.map(asPart) : []
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Only addresses that lead somewhere; whatever else, no script and no data, leads nowhere. */
export function safeLink(url: string): string {
  return /^https?:\/\//iu.test(url) ? url : '#'
}

/** For what this cannot draw: seen at once, never left out. */
export function drawUnknown(what: string, value: unknown): Html {
  const shown = JSON.stringify(value)?.slice(0, 300) ?? ''
  return markup`<p class="unknown"><strong>Not drawn: ${what}</strong> ${shown}</p>`
}

/** A mail in a frame of its own that runs nothing and reaches nothing. */
export function drawMail(title: string, content: string, height = 480): Html {
  return markup`<iframe sandbox="" title="${title}" height="${height}" loading="lazy" tabindex="0" srcdoc="${content}"></iframe>`
}

interface Page {
  title: string
  content: Html
  /** Loads the page again every so many seconds. */
  refreshSeconds?: number | undefined
}

/** What a page of messages may do: show its own style, and nothing from elsewhere. */
export const contentPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"

/** A page that stands by itself. */
export function drawPage({ title, content, refreshSeconds }: Page): string {
  const refresh =
    refreshSeconds === undefined
      ? ''
      : markup`<meta http-equiv="refresh" content="${refreshSeconds}" />`
  return markup`<!doctype html><html lang="en" dir="ltr"><head><meta charset="utf-8" /><meta http-equiv="Content-Security-Policy" content="${contentPolicy}" /><meta name="viewport" content="width=device-width, initial-scale=1" /><meta name="color-scheme" content="light dark" /><meta name="referrer" content="no-referrer" />${refresh}<title>${title}</title><style>${new Html(style)}</style></head><body><main>${content}</main></body></html> `
    .text
}

/** Colours have a contrast of 4.5 and more on both grounds. */
const style = `
:root { color-scheme: light dark; --ink: #1d1c1d; --soft: #55545a; --ground: #fff; --line: #d5d5d8; --card: #fff; --quiet: #f4f4f6; --link: #0b5cad; --alarm: #b3141d; --warn: #8a4b00 }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8ea; --soft: #b4b4bb; --ground: #121214; --line: #3c3c42; --card: #1b1c20; --quiet: #26272c; --link: #7db7f5; --alarm: #ff8d8d; --warn: #ffc26b } }
* { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.47 "Helvetica Neue", Arial, "Liberation Sans", sans-serif }
main { padding: 16px; max-width: 1500px; margin: 0 auto }
a { color: var(--link) }
h1 { font-size: 22px } h2 { font-size: 18px; margin: 28px 0 8px } h3 { font-size: 15px; margin: 16px 0 6px }
p { margin: 4px 0 }
pre { margin: 4px 0; padding: 8px; background: var(--quiet); border: 1px solid var(--line); border-radius: 4px; font: 12px/1.5 Menlo, "Liberation Mono", monospace; white-space: pre-wrap; overflow-wrap: anywhere }
table { border-collapse: collapse } th, td { text-align: start; vertical-align: top; padding: 3px 10px 3px 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere }
iframe { width: 100%; border: 1px solid var(--line); border-radius: 4px }
summary { cursor: pointer; padding: 4px 0 } ul { margin: 4px 0; padding-inline-start: 22px }
.soft { color: var(--soft); font-size: 13px }
.unknown { border: 2px solid var(--alarm); color: var(--alarm); padding: 6px; overflow-wrap: anywhere }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); gap: 16px; align-items: start }
.columns > * { min-width: 0 }
.message { display: grid; grid-template-columns: 36px minmax(0, 1fr); gap: 8px; padding: 10px; background: var(--card); border: 1px solid var(--line); border-radius: 6px; margin: 6px 0; overflow-wrap: anywhere }
.face { width: 36px; height: 36px; border-radius: 6px; background: #4a154b; color: #fff; display: grid; place-items: center; font-weight: 700 }
.app { font-size: 11px; background: var(--quiet); color: var(--soft); border-radius: 2px; padding: 0 4px }
.header { font-size: 18px; font-weight: 900; margin: 4px 0 }
.fields { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 200px), 1fr)); gap: 6px 16px; margin: 6px 0 }
.text { white-space: pre-wrap }
.context { color: var(--soft); font-size: 13px; margin: 6px 0; white-space: pre-wrap }
.button { display: inline-block; border: 1px solid var(--soft); border-radius: 4px; padding: 4px 12px; font-weight: 700; text-decoration: none; color: var(--ink) }
.mention { background: #fff3d6; color: #6b4a00; border-radius: 3px; padding: 0 2px }
.card { padding: 12px 16px; background: var(--card); border: 1px solid var(--line); border-radius: 6px; margin: 6px 0; overflow-wrap: anywhere }
.card .emphasis { background: var(--quiet); padding: 8px; margin: 6px 0 }
.card .separator { border-top: 1px solid var(--line); padding-top: 6px }
.spacing-none { margin: 0 } .spacing-small { margin-top: 3px } .spacing-medium { margin-top: 12px }
.bolder { font-weight: 700 } .size-small { font-size: 12px } .size-medium { font-size: 17px } .size-large { font-size: 20px } .subtle { color: var(--soft) } .monospace { font-family: Menlo, "Liberation Mono", monospace; font-size: 13px }
.attention { color: var(--alarm) } .warning { color: var(--warn) } .accent { color: var(--link) }
`

/**
 * Styles of the HTML parts, inline because mail programs drop the others. Text has the reader's own
 * colours, so that a dark mode may turn the page around; every colour here keeps a contrast of 4.5 to
 * white, whether behind or before it, and of 3 to near black (WCAG 2.2, 1.4.3 and 1.4.11).
 */
export const sans = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
export const mono = 'font-family:ui-monospace,Menlo,Consolas,monospace'
export const grey = '#767676'
/** Less loud on any background; no grey has a contrast of 4.5 to both white and near black. */
export const faint = 'opacity:0.75'
export const tint = 'background-color:rgba(127,127,127,0.14)'
export const wrap = 'overflow-wrap:anywhere;word-break:break-word'

const accents: Readonly<Record<string, string>> = {
  critical: '#c62828',
  high: '#cb3f10',
  medium: '#9a6200',
  low: '#1976d2',
  info: grey,
}

/** An unknown word is as grave as the gravest. */
export function accentOf(severity: string): string {
  return (Object.hasOwn(accents, severity) ? accents[severity] : undefined) ?? '#c62828'
}

/** A word in white on the severity's colour. */
export function chipStyle(severity: string): string {
  return `padding:1px 7px;border-radius:4px;font-weight:bold;color:#ffffff;background-color:${accentOf(severity)}`
}

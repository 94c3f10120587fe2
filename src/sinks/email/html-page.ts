import { escapeHtml } from './escape-html.ts'
import { sans } from './mail-style.ts'

/** A whole mail around its content. `summary` is what an inbox shows beside the subject. */
export function htmlPage(summary: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<meta name="x-apple-disable-message-reformatting">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${escapeHtml(summary)}</title>
</head>
<body style="margin:0;padding:16px;${sans};font-size:16px;line-height:1.45">
<div style="display:none;max-height:0;overflow:hidden">${escapeHtml(summary)}</div>
${content}
</body>
</html>
`
}

/** Text for Slack: nothing in it can become a mention, a link or markup, and it fits where it goes. */

export interface PlainText {
  type: 'plain_text'
  text: string
  emoji: false
}

/** A plain_text object: no formatting and no emoji. Slack decodes the three entities in it. */
export function plainText(text: string, maxLength: number): PlainText {
  return { type: 'plain_text', text: escapeWithin(text, maxLength) || '-', emoji: false }
}

/** A link, which can only be ours, or the colon of `:skull:`, but not that of the minutes of a time. */
const linkOrEmoji = /https?:\/\/\S+|:(?!\d\d:)(?=[\p{L}\p{N}\p{M}_+'-]+:)/gu

/**
 * For the message's own `text`, which goes with `mrkdwn: false`: Slack formats nothing in it, and reads names
 * of emoji all the same. They are written as `defang` writes what it takes apart, for `refang` to undo.
 */
export function mrkdwnText(text: string, maxLength: number): string {
  const inert = text
    .replaceAll('`', "'")
    .replace(linkOrEmoji, (found) => (found === ':' ? '[:]' : found))
  return escapeWithin(inert, maxLength) || '-'
}

/**
 * Exactly `&`, `<` and `>` become entities (Slack, "Escaping text"); at most `maxLength` characters
 * after that, cut between code points and never inside an entity.
 */
export function escapeWithin(text: string, maxLength: number): string {
  const whole = escape(text)
  if (whole.length <= maxLength) return whole
  let kept = ''
  for (const character of text) {
    const escaped = escape(character)
    if (kept.length + escaped.length >= maxLength) break
    kept += escaped
  }
  return `${kept}…`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

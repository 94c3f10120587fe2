/**
 * Draws a message of Microsoft Teams: the part of Adaptive Cards that Tocsin uses. What this does
 * not know is shown as an error, never left out.
 */
import {
  asPart,
  asParts,
  asText,
  drawUnknown,
  markup,
  type Html,
  type Part,
  safeLink,
} from './html.ts'

/** `message`: the JSON that a workflow takes. */
export function drawTeams(message: unknown): Html {
  const cards = asParts(asPart(message)['attachments']).map(({ content }) => asPart(content))
  return markup`${cards.map(({ body, actions }) => markup`<div class="card">${asParts(body).map(drawElement)}${actions === undefined ? '' : markup`<p class="spacing-medium">${asParts(actions).map(drawAction)}</p>`}</div>`)}`
}

function drawElement(element: Part): Html {
  const { type, separator, spacing, style } = element
  const look = [
    separator === true ? 'separator' : '',
    typeof spacing === 'string' ? `spacing-${spacing}` : '',
    style === 'emphasis' ? 'emphasis' : '',
  ]
    .join(' ')
    .trim()
  switch (type) {
    case 'RichTextBlock':
      return markup`<p class="${look}">${asParts(element['inlines']).map(drawRun)}</p>`
    case 'Container':
      return markup`<div class="${look}">${asParts(element['items']).map(drawElement)}</div>`
    default:
      return drawUnknown('element', element)
  }
}

function drawRun(run: Part): Html {
  if (run['type'] !== 'TextRun') return drawUnknown('run', run)
  const { weight, size, color, isSubtle, fontType, selectAction } = run
  const look = [
    weight === 'bolder' ? 'bolder' : '',
    typeof size === 'string' ? `size-${size}` : '',
    typeof color === 'string' && color !== 'default' ? color : '',
    isSubtle === true ? 'subtle' : '',
    fontType === 'monospace' ? 'monospace' : '',
  ]
    .filter(Boolean)
    .join(' ')
  const text = asText(run['text'])
  const url = asText(asPart(selectAction)['url'])
  if (url !== '')
    return markup`<a class="${look}" href="${safeLink(url)}" rel="noreferrer">${text}</a>`
  return markup`<span class="${look}">${text}</span>`
}

function drawAction(action: Part): Html {
  if (action['type'] !== 'Action.OpenUrl') return drawUnknown('action', action)
  const { title, url } = action
  return markup`<a class="button" href="${safeLink(asText(url))}" rel="noreferrer">${asText(title)}</a> `
}

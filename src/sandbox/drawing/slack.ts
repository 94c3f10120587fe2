/**
 * Draws a Slack message: the part of Block Kit that Tocsin uses, in the order and with the weights
 * that Slack gives it. What this does not know is shown as an error, never left out.
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

/** `message`: the posted JSON. */
export function drawSlack(message: unknown): Html {
  const { text, blocks } = asPart(message)
  const content = Array.isArray(blocks)
    ? asParts(blocks).map(drawBlock)
    : [markup`<div class="text">${decode(asText(text))}</div>`]
  return markup`<div class="message"><div class="face" aria-hidden="true">T</div><div><p><strong>Tocsin</strong> <span class="app">APP</span></p>${content}</div></div>`
}

function drawBlock(block: Part): Html {
  switch (block['type']) {
    case 'header':
      return markup`<p class="header">${decode(textIn(block))}</p>`
    case 'section':
      return drawSection(block)
    case 'context':
      return markup`<div class="context">${asParts(block['elements']).map((element) => markup`<div>${drawText(element)}</div>`)}</div>`
    case 'actions':
      return markup`<p>${asParts(block['elements']).map(drawButton)}</p>`
    case 'rich_text':
      return markup`<div>${asParts(block['elements']).map(drawRich)}</div>`
    default:
      return drawUnknown('block', block)
  }
}

function drawSection({ text, fields }: Part): Html {
  const shownText =
    text === undefined ? '' : markup`<div class="text">${drawText(asPart(text))}</div>`
  const shownFields =
    fields === undefined
      ? ''
      : markup`<div class="fields">${asParts(fields).map((field) => markup`<div class="text">${drawText(field)}</div>`)}</div>`
  return markup`<div>${shownText}${shownFields}</div>`
}

/** A text object: Slack decodes three entities, and formats only mrkdwn. */
function drawText(part: Part): Html {
  if (part['type'] === 'plain_text') return markup`${decode(asText(part['text']))}`
  if (part['type'] === 'mrkdwn') return drawMrkdwn(asText(part['text']))
  return drawUnknown('text', part)
}

/** Bold, mentions and links, of which it shows the words; other markup stays as it is written. */
function drawMrkdwn(text: string): Html {
  const pieces = text.split(/(<[^<>]+>|\*[^*\n]+\*)/u).map((piece) => {
    const [, inner = ''] = /^<([^<>]+)>$/u.exec(piece) ?? []
    const [, bold = ''] = /^\*([^*\n]+)\*$/u.exec(piece) ?? []
    if (bold !== '') return markup`<strong>${decode(bold)}</strong>`
    if (inner === '') return markup`${decode(piece)}`
    const [target = '', words = target] = inner.split('|')
    return /^[@#!]/u.test(inner)
      ? markup`<span class="mention">${words}</span>`
      : markup`<a href="${safeLink(target)}" rel="noreferrer">${decode(words)}</a>`
  })
  return markup`${pieces}`
}

function drawButton(element: Part): Html {
  if (element['type'] !== 'button') return drawUnknown('element', element)
  const words = decode(textIn(element))
  return markup`<a class="button" href="${safeLink(asText(element['url']))}" rel="noreferrer">${words}</a> `
}

function drawRich(element: Part): Html {
  const inner = asParts(element['elements'])
  switch (element['type']) {
    case 'rich_text_section':
      return markup`<div class="text">${inner.map(drawInline)}</div>`
    case 'rich_text_preformatted':
      return markup`<pre>${inner.map(drawInline)}</pre>`
    case 'rich_text_list':
      return markup`<ul>${inner.map((item) => markup`<li>${asParts(item['elements']).map(drawInline)}</li>`)}</ul>`
    default:
      return drawUnknown('rich text', element)
  }
}

function drawInline(inline: Part): Html {
  switch (inline['type']) {
    case 'text': {
      const text = markup`${asText(inline['text'])}`
      return asPart(inline['style'])['bold'] === true ? markup`<strong>${text}</strong>` : text
    }
    case 'link': {
      const url = asText(inline['url'])
      return markup`<a href="${safeLink(url)}" rel="noreferrer">${asText(inline['text']) || url}</a>`
    }
    default:
      return drawUnknown('inline', inline)
  }
}

/** Slack decodes the three entities, the ampersand last. */
function decode(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

function textIn(part: Part): string {
  return asText(asPart(part['text'])['text'])
}

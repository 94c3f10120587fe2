/** Pictures of messages in a real Chromium: light, dark, inverted as mail programs do it, on a phone. */
import { type Browser, chromium, type Page } from 'playwright-core'
import { drawPage, markup } from '../../src/sandbox/drawing/html.ts'
import { drawSlack } from '../../src/sandbox/drawing/slack.ts'
import type { Delivery } from '../../src/sinks/sink.ts'
import { executablePath } from '../support/chromium-path.ts'
import { otherScenes, typeScenes } from '../support/scenes.ts'
import { openSinks, previewOf, type Previews } from './page.ts'

interface Picture {
  name: string
  picture: Buffer
}

/** How a reader's program shows a page. */
interface Look {
  name: string
  width: number
  colorScheme: 'light' | 'dark'
  invert?: Inversion
}

/** `all`: every colour; `kept hue`: so that red stays red; `light grounds`: only what is light, as Outlook.com. */
type Inversion = 'all' | 'kept hue' | 'light grounds'

const looks: readonly Look[] = [
  { name: 'light', width: 720, colorScheme: 'light' },
  { name: 'dark', width: 720, colorScheme: 'dark' },
  { name: 'phone', width: 360, colorScheme: 'light' },
  { name: 'inverted', width: 720, colorScheme: 'light', invert: 'all' },
  { name: 'inverted-hue', width: 720, colorScheme: 'light', invert: 'kept hue' },
  { name: 'inverted-grounds', width: 720, colorScheme: 'light', invert: 'light grounds' },
]

/** Those that the documentation shows. */
const docsPictures = [
  'slack-event-light.png',
  'slack-group-light.png',
  'mail-event-light.png',
  'mail-event-dark.png',
  'mail-event-phone.png',
  'mail-event-inverted.png',
  'mail-event-inverted-hue.png',
  'mail-event-inverted-grounds.png',
  'mail-digest-light.png',
  'mail-digest-dark.png',
  'mail-digest-phone.png',
]

/** A long page is cut: what counts stands at its top. */
const maxHeight = 1100

export async function takePictures(): Promise<Picture[]> {
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  const sinks = await openSinks()
  try {
    const wanted = subjects(sinks)
      .flatMap(([subject, content]) =>
        looks.map((look) => ({ name: `${subject}-${look.name}.png`, content, look })),
      )
      .filter(({ name }) => docsPictures.includes(name))
    const pictures: Picture[] = []
    for (const { name, content, look } of wanted) {
      pictures.push({ name, picture: await takePicture(browser, content, look) })
    }
    return pictures
  } finally {
    for (const sink of sinks.values()) await sink.close()
    await browser.close()
  }
}

function subjects(sinks: Previews): [name: string, html: string][] {
  return [
    ['slack-event', slackPage(sinks, scene('stealer_log, with the full event'))],
    ['slack-group', slackPage(sinks, scene('a group'))],
    ['mail-event', mail(sinks, scene('stealer_log, with the full event'))],
    ['mail-digest', mail(sinks, scene('a digest'))],
  ]
}

function scene(wanted: string): Delivery {
  const [, found] = [...typeScenes, ...otherScenes].find(([name]) => name === wanted) ?? []
  if (found === undefined) throw new Error(`there is no scene "${wanted}"`)
  return found
}

function slackPage(sinks: Previews, one: Delivery): string {
  const content = markup`<h1 hidden>Slack</h1>${drawSlack(previewOf(sinks, 'slack', one)?.body)}`
  return drawPage({ title: 'Slack', content })
}

function mail(sinks: Previews, one: Delivery): string {
  return previewOf(sinks, 'email', one)?.html ?? ''
}

async function takePicture(browser: Browser, html: string, look: Look): Promise<Buffer> {
  const { width, colorScheme, invert } = look
  const context = await browser.newContext({ viewport: { width, height: 400 }, colorScheme })
  try {
    const page = await context.newPage()
    await page.route('**/*', (route) => route.abort())
    await page.setContent(html)
    if (invert !== undefined) await invertPage(page, invert)
    const height = Math.min(
      await page.evaluate<number>('document.documentElement.scrollHeight'),
      maxHeight,
    )
    await page.setViewportSize({ width, height })
    return await page.screenshot({ type: 'png' })
  } finally {
    await context.close()
  }
}

async function invertPage(page: Page, how: Inversion): Promise<void> {
  if (how === 'light grounds') return void (await page.evaluate(invertLightGrounds))
  const filter = how === 'all' ? 'invert(1)' : 'invert(1) hue-rotate(180deg)'
  await page.evaluate(`document.documentElement.style.cssText = 'background:#fff;filter:${filter}'`)
}

/** Grounds that are light become dark, and words that are dark become light; the rest stays. */
const invertLightGrounds = `(() => {
  const parse = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number)
  const lightness = ([red, green, blue]) => (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255
  const flip = ([red, green, blue]) => 'rgb(' + [red, green, blue].map((part) => Math.round(255 - part * 0.93)).join(',') + ')'
  for (const element of document.querySelectorAll('html, body, body *')) {
    const style = getComputedStyle(element)
    const ground = parse(style.backgroundColor)
    const ink = parse(style.color)
    const isClear = ground.length === 4 && ground[3] === 0
    const root = element.tagName === 'HTML'
    element.dataset.ground = root && isClear ? 'rgb(18,18,18)' : !isClear && lightness(ground) > 0.5 ? flip(ground) : ''
    element.dataset.ink = lightness(ink) < 0.5 ? flip(ink) : ''
  }
  for (const element of document.querySelectorAll('[data-ground]')) {
    if (element.dataset.ground) element.style.setProperty('background-color', element.dataset.ground, 'important')
    if (element.dataset.ink) element.style.setProperty('color', element.dataset.ink, 'important')
  }
})()`

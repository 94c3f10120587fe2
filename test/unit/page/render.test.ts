import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ViewData } from '../../../src/page/output/view-data.ts'
import { createRenderer } from '../../../src/page/output/render.ts'
import { emptySamples, message, type PageSample, pageSamples } from '../../support/page-samples.ts'

const { render } = createRenderer()
const source = join(import.meta.dirname, '../../../src/page')
const templates = readdirSync(join(source, 'views')).map(
  (file) => [file, readFileSync(join(source, 'views', file), 'utf8')] as const,
)

function htmlOf({ view, data }: PageSample): string {
  return render(view, data)
}

function sampleOf(view: string, samples = pageSamples): PageSample {
  const found = samples.find((one) => one.view === view)
  if (found === undefined) throw new Error(`there is no sample of ${view}`)
  return found
}

describe('every template', () => {
  test.each(templates)('%s leaves escaping on, and has no style or script within', (_, text) => {
    expect(text).not.toMatch(/\braw\b/)
    expect(text).not.toMatch(/\sstyle=|<style|\son\w+=|javascript:/)
    expect(text.match(/<script(?! src="\/static\/tocsin.js")/)).toBeNull()
  })

  test.each(templates)('%s writes every value into text or into quotes', (_, text) => {
    expect(text).not.toMatch(/\s[\w-]+=\{\{/)
  })

  test.each(templates)('%s checks where each link and form leads', (_, text) => {
    const targets = [...text.matchAll(/(?:href|action)="([^"]+)"/g)].flatMap(([, target]) =>
      [...target!.matchAll(/\{\{ ([^}]+) \}\}/g)].map(([, value]) => value!),
    )
    const ours = ['action', 'narrow', 'filters.account | url_encode']
    expect(targets.filter((to) => !to.endsWith('| address') && !ours.includes(to))).toEqual([])
  })
})

describe('every view', () => {
  test.each(pageSamples)('$view has at most 60 kB', (sample) => {
    expect(Buffer.byteLength(htmlOf(sample))).toBeLessThan(60_000)
  })

  test.each([...pageSamples, ...emptySamples])(
    '$view has one heading of the first level',
    (sample) => {
      expect(htmlOf(sample).match(/<h1[ >]/g)).toHaveLength(1)
    },
  )

  test.each([...pageSamples, ...emptySamples])(
    '$view names each column of its tables',
    (sample) => {
      for (const [table] of htmlOf(sample).matchAll(/<table.*?<\/table>/gs)) {
        expect(table).toMatch(/<caption/)
        expect(table).toMatch(/<th scope="col"/)
        expect(table).toMatch(/<th scope="row"/)
      }
    },
  )

  test.each(emptySamples)('$view says what to do where it has nothing to show', (sample) => {
    expect(htmlOf(sample)).toMatch(/class="empty"/)
  })
})

test('a text is written as text, without what hides, turns or runs', () => {
  const title = `"><script>x</script> {{ 7 | times: 7 }} \u202Eevil\u0007'`
  const page = sampleOf('message').data.page
  const html = render('message', { ...message, headline: title, page })
  expect(html).toContain(
    '<h1>&#34;&gt;&lt;script&gt;x&lt;/script&gt; {{ 7 | times: 7 }} evil&#39;</h1>',
  )
})

test('a severity of another name keeps its word and looks like an unknown one', () => {
  const { data } = sampleOf('event')
  const html = render('event', { ...data, severity: 'hidden' } as never)
  expect(html).toContain('<b class="s unknown">hidden</b>')
})

test('a link that runs something leads nowhere', () => {
  const { data } = sampleOf('event')
  for (const link of ['javascript:x', 'data:text/html,x', '//evil.example', '/\\evil.example']) {
    const html = render('event', { ...data, link } as never)
    expect(html).toContain('<a class="button go" href="#"')
  }
})

test('an answer that lacks what a view names is a mistake', () => {
  const { data } = sampleOf('told')
  expect(() => render('told', { ...data, messages: undefined } as never)).toThrow(/messages/)
  expect(() => render('told', { ...data, messages: [{}] } as never)).toThrow(/undefined/)
})

test('every act carries its own token, and one without a token is a mistake', () => {
  const { data } = sampleOf('message')
  const tokens = { '/sign-out': 'a', '/acts/resend': 'token-of-resend' }
  const html = render('message', { ...data, page: { ...data.page, tokens } } as never)
  expect(html).toContain('name="form_token" value="token-of-resend"')
  const without = { ...data, page: { ...data.page, tokens: { '/sign-out': 'a' } } }
  expect(() => render('message', without as never)).toThrow(/undefined/)
})

test('tenants and the choice of an account are shown only where there are several', () => {
  expect(htmlOf(sampleOf('now'))).toMatch(/href="\/tenants".*aria-label="Account"/s)
  expect(htmlOf(sampleOf('now', emptySamples))).not.toMatch(/href="\/tenants"|aria-label="Account"/)
})

test('who narrowed the page to an account stays there', () => {
  const html = htmlOf(sampleOf('now', emptySamples))
  expect(html).toContain('href="/told?account=acme"')
  expect(html).toContain('<input type="hidden" name="account" value="acme">')
})

test('the stylesheet has no address, and the script is under 5 kB', () => {
  expect(readFileSync(join(source, 'static/tocsin.css'), 'utf8')).not.toMatch(/url\(|@import/)
  expect(readFileSync(join(source, 'static/tocsin.js')).length).toBeLessThan(5000)
})

test.each([
  [0, null, 'none'],
  [3, null, 'over a day'],
  [3, 60, '1 min'],
])(
  'of %i critical events of which the slowest took %s s, Now says "%s"',
  (told, slowest, words) => {
    const { view, data } = sampleOf('now')
    const { last_24h: day } = data as ViewData['now']
    const last_24h = day && { ...day, criticals_told: told, slowest_critical_s: slowest }
    const html = render(view, { ...data, last_24h } as typeof data)
    expect(/Slowest critical to a person<\/dt><dd>(.*?)<\/dd>/su.exec(html)?.[1]).toContain(words)
  },
)

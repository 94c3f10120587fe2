/** axe-core in a page of a real browser. */
import axe from 'axe-core'
import type { Page } from 'playwright-core'

interface Finding {
  id: string
  nodes: { html: string }[]
}

/** What axe-core objects to: rule and element. Frames are looked at by themselves. */
export async function axeFindingsIn(page: Page, rules = {}): Promise<string[]> {
  await page.evaluate(axe.source)
  const found = await page.evaluate<Finding[]>(
    `axe.run(document, { iframes: false, resultTypes: ['violations'], rules: ${JSON.stringify(rules)} }).then(({ violations }) => violations)`,
  )
  return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`))
}

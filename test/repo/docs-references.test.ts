/** What the pages point at is there: files, headings, commands and their options. */
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'
import { optionsByCommand } from '../docs/commands.ts'
import { fencedBlocks } from '../docs/markdown.ts'
import { docsPages, pagesOfThisVersion, readPage, root } from '../docs/pages.ts'

const linking = ['README.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'SECURITY.md', ...docsPages()]

describe('every link', () => {
  test.each(linking)(
    'of %s within the repository leads to a file, and to a heading of it',
    (path) => {
      const page = withoutFences(readPage(path)).replaceAll(/`[^`\n]*`/g, '')
      const links = [...page.matchAll(/\]\(([^)\s]+)\)|<img src="([^"]+)"/g)]
      const targets = links.map(([, link, image]) => link ?? image ?? '')
      const broken = targets.filter(
        (target) => !/^https?:/.test(target) && !leadsSomewhere(path, target),
      )
      expect(broken).toEqual([])
    },
  )
})

function leadsSomewhere(path: string, target: string): boolean {
  const [file = '', anchor] = target.split('#')
  const place = file === '' ? path : normalize(join(dirname(path), file))
  if (!existsSync(join(root, place))) return false
  return anchor === undefined || anchorsOf(readPage(place)).includes(anchor)
}

/** As GitHub makes them; the second of two alike ends in `-1`. */
function anchorsOf(page: string): string[] {
  const plain = withoutFences(page)
    .split('\n')
    .filter((line) => /^#{1,6} /.test(line))
    .map((line) => line.replace(/^#+ /, '').toLowerCase())
    .map((heading) => heading.replaceAll(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-'))
  return plain.map((anchor, at) => {
    const before = plain.slice(0, at).filter((other) => other === anchor).length
    return before === 0 ? anchor : `${anchor}-${before}`
  })
}

function withoutFences(page: string): string {
  return page.replaceAll(/^ *```.*?^ *```/gms, '')
}

/** `docs/run.md, "Backup and restore"`, `docs/api-notes.md, Tokens`; a comment may break in the heading. */
const pageNamed = /\b(docs\/[\w/-]+\.md)(?:, "?([A-Z][\w ]*\w))?/g

test('every page that sources, tests, alerts and the unit name is there, with the heading', () => {
  const places = files.filter((file) => /\.(ts|lua|yaml|service)$|Dockerfile$/.test(file))
  const named = places.flatMap((place) =>
    [...readPage(place).matchAll(pageNamed)].map(([, page = '', heading = '']) => ({
      place,
      page,
      heading: heading.toLowerCase().replaceAll(' ', '-'),
    })),
  )
  expect(named.length).toBeGreaterThan(100)
  const isThere = ({ page, heading }: (typeof named)[number]): boolean =>
    existsSync(join(root, page)) &&
    anchorsOf(readPage(page)).some((anchor) => anchor.startsWith(heading))
  expect(named.filter((one) => !isThere(one))).toEqual([])
})

/** The changelog also speaks of what was. */
const naming = linking.filter((path) => path !== 'CHANGELOG.md')
const filePath = /^(?:[\w.-]+\/)*[\w.-]+\.(?:ts|lua|md|yaml|yml|sh|tpl)$/

describe('every file', () => {
  test.each(naming)('that %s names in code is there', (path) => {
    const codes = [...withoutFences(readPage(path)).matchAll(/`([^`\n]+)`/g)]
    const names = codes.map(([, code = '']) => code).filter((code) => filePath.test(code))
    expect(names.filter((name) => !isInRepository(path, name))).toEqual([])
  })
})

const folders = ['src', 'test', 'docs', 'deploy', 'config']
const files = folders.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) =>
    join(folder, file),
  ),
)

/** By the end of its path, as pages name files of a room. A file of YAML may be the reader's own. */
function isInRepository(page: string, name: string): boolean {
  if (!name.includes('/') && /\.ya?ml$/.test(name)) return true
  const isThere = ['.', dirname(page)].some((place) => existsSync(join(root, place, name)))
  return isThere || files.some((file) => file.endsWith(`/${name}`))
}

describe('every promise', () => {
  const [, section = ''] = readPage('docs/testing.md').split('\n## Promises\n')
  const [table = ''] = section.split('\n## ')
  const rows = table.split('\n').filter((line) => line.startsWith('| **'))

  test('has a row in docs/testing.md, and there are many', () => {
    expect(rows.length).toBeGreaterThan(40)
  })

  test.each(rows)('names the one file that shows it: %s', (row) => {
    const files = [...row.matchAll(/\]\(\.\.\/(test\/[^)]+)\)/g)].map(([, file = '']) => file)
    expect(files).toEqual([expect.stringMatching(/\.test\.ts$/)])
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
  })
})

describe('every command', async () => {
  const known = await optionsByCommand()
  const groups = new Set([...known.keys()].filter((name) => name.includes(' ')).map(firstWord))
  const quoted = [...pagesOfThisVersion()].flatMap(([path, page]) =>
    [...linesOf(page), ...codesOf(page)].map((words) => ({ path, words })),
  )

  /** What a block runs, without the comment behind it. */
  function linesOf(page: string): string[] {
    const lines = fencedBlocks(page, 'sh').flatMap((block) => block.split('\n'))
    return lines.flatMap((line) => /npm run tocsin -- (.+?)(?: +#.*)?$/.exec(line)?.slice(1) ?? [])
  }

  /** Code in a sentence that begins with a group of commands and one more word, or names an option. */
  function codesOf(page: string): string[] {
    return [...withoutFences(page).matchAll(/`([^`\n]+)`/g)]
      .map(([, code = '']) => code.replace(/^(npm run (--silent )?tocsin -- |tocsin )/, ''))
      .filter((code) => groups.has(firstWord(code)) || known.has(firstWord(code)))
      .filter((code) => /^[a-z-]+ (<?[a-z-]|--)/.test(code))
  }

  function mistakeIn(words: string): string | undefined {
    const [first = '', second = ''] = words.split(' ')
    const name = groups.has(first) ? `${first} ${second}` : first
    const options = known.get(name)
    if (options === undefined) return `${words}: there is no command ${name}`
    const outside = words.replaceAll(/'[^']*'|\{[^}]*\}/g, '')
    const named = outside.match(/(?<![\w-])--?[a-z][a-z-]*/g) ?? []
    const unknown = named.filter((flag) => !options.includes(flag) && flag !== '--help')
    return unknown.length > 0 ? `${words}: no option ${unknown.join(', ')}` : undefined
  }

  test('that a page quotes is there, with the options that it is given', () => {
    expect(quoted.length).toBeGreaterThan(40)
    const mistakes = quoted
      .map(({ path, words }) => ({ path, mistake: mistakeIn(words) }))
      .filter(({ mistake }) => mistake !== undefined)
    expect(mistakes).toEqual([])
  })

  /** Runbooks and self-alerts say commands in plain words: `tocsin feeds list says why; …`. */
  const remedies = [
    ...readPage('deploy/prometheus/rules.yaml').split('\n'),
    ...readPage('src/operator/alerts/troubles.ts').split('\n'),
    ...readPage('src/operator/problems.ts').split('\n'),
  ].flatMap((line) => line.match(/(?<=tocsin )[a-z-]+( [^;,.:`'"]*)?/g) ?? [])

  test('that a runbook, a self-alert or doctor sends somebody to is there, with its options', () => {
    expect(remedies.length).toBeGreaterThan(60)
    expect(remedies.map(mistakeIn).filter(Boolean)).toEqual([])
  })
})

function firstWord(words: string): string {
  return words.split(' ')[0] ?? ''
}

/** What commands and metrics say, letter by letter; see `messages.test.ts`. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { createMetrics } from '../../src/lib/metrics/metrics.ts'
import { tocsin } from '../integration/cli/tocsin.ts'
import { transcriptFolder } from './transcript.ts'

/** The names below `Commands:`, which stand two blanks from the left. */
function commandsIn(help: string): string[] {
  const [, list = ''] = help.split('\nCommands:\n')
  const names = [...list.matchAll(/^ {2}(\S+)/gm)].map(([, name = '']) => name)
  return names.filter((name) => name !== 'help')
}

/** Two of what `tocsin api` generates stand for all: every-operation.test.ts asks each. */
const shownOperations = ['events.expand', 'policies.assign']

async function helpOf(path: string[]): Promise<string[]> {
  const { out } = await tocsin(...path, '--help')
  const names = path[0] === 'api' ? shownOperations : commandsIn(out)
  const below = await Promise.all(
    (path.length > 1 && path[0] === 'api' ? [] : names).map((name) => helpOf([...path, name])),
  )
  return [`==== tocsin ${path.join(' ')}\n${out}`, ...below.flat()]
}

test('every command says of itself what it said', async () => {
  const pages = await helpOf([])
  expect(pages.length).toBeGreaterThan(50)
  await expect(pages.join('\n')).toMatchFileSnapshot('recorded/help.txt')
})

/** What no transcript shows doing its work, in the order of the help, and where it is shown instead. */
const shownElsewhere = {
  run: 'until it is stopped: test/e2e',
  schema: 'it prints config/tocsin.schema.json',
  demo: 'until it is stopped: test/e2e/the-demo-counts-both-sides.test.ts',
  sandbox: 'until it is stopped: test/integration/cli/sandbox-command.test.ts',
  'users hash': 'a hash is another each time: test/integration/cli/users-hash.test.ts',
  status: 'a daemon must run: test/integration/cli/status.test.ts',
}

test('a transcript shows every command, doing its work and refusing a mistake', async () => {
  const pages = await helpOf([])
  const commands = pages
    .filter((page) => commandsIn(page).length === 0)
    .map((page) => /^==== tocsin (.*)\n/.exec(page)?.[1] ?? '')
  expect(commands.length).toBeGreaterThan(40)
  const asked = readdirSync(transcriptFolder).flatMap((name) =>
    [...readFileSync(join(transcriptFolder, name), 'utf8').matchAll(typed)].map(
      ([, line = '', code]) => ({ line: `${line} `, works: code === '0' }),
    ),
  )
  const lacking = (works: boolean): string[] =>
    commands.filter((command) => {
      const own = asked.filter(({ line }) => line.startsWith(`${command} `))
      return !own.some((one) => one.works === works)
    })
  expect(lacking(true)).toEqual(Object.keys(shownElsewhere))
  expect(lacking(false)).toEqual([])
})

/** A command and its exit code. */
const typed = /^\$ tocsin (.*)\n(?:(?!\$ tocsin ).*\n)*?exit (\d+)$/gm

test('metrics have the names, kinds, words and labels that they had', async () => {
  const { body } = await createMetrics({ clock: systemClock }).render()
  const lines = body
    .split('\n')
    .filter((line) => line.startsWith('# ') || line.startsWith('tocsin_'))
    .map((line) => (line.startsWith('# ') ? line : line.replace(/ \S+$/, '')))
  expect(lines.length).toBeGreaterThan(100)
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('recorded/metrics.txt')
})

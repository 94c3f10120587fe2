/** What commands and metrics say, letter by letter; see `messages.test.ts`. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { createMetrics } from '../../src/lib/metrics.ts'
import { tocsin, type Ended } from '../integration/cli/tocsin.ts'

/** The names below `Commands:`, which stand two blanks from the left. */
function commandsIn(help: string): string[] {
  const [, list = ''] = help.split('\nCommands:\n')
  const names = [...list.matchAll(/^ {2}(\S+)/gm)].map(([, name = '']) => name)
  return names.filter((name) => name !== 'help')
}

async function helpOf(path: string[]): Promise<string[]> {
  const { out } = await tocsin(...path, '--help')
  const below = await Promise.all(commandsIn(out).map((name) => helpOf([...path, name])))
  return [`==== tocsin ${path.join(' ')}\n${out}`, ...below.flat()]
}

test('every command says of itself what it said', async () => {
  const pages = await helpOf([])
  expect(pages.length).toBeGreaterThan(60)
  await expect(pages.join('\n')).toMatchFileSnapshot('recorded/help.txt')
})

test('the examples are told as they were', async () => {
  const folder = join(import.meta.dirname, '../../config')
  const files = readdirSync(folder).filter((name) => /^(minimal|tocsin)\.yaml$/.test(name))
  expect(files).toHaveLength(2)
  const told: string[] = []
  for (const name of files) {
    for (const more of [[], ['--output', 'json']]) {
      const asked = ['check', join(folder, name), ...more]
      told.push(shown(['check', name, ...more], await tocsin(...asked)))
    }
  }
  await expect(told.join('\n').replaceAll(folder, 'config')).toMatchFileSnapshot(
    'recorded/check.txt',
  )
})

test('metrics have the names, kinds, words and labels that they had', async () => {
  const { body } = await createMetrics({ clock: systemClock }).render()
  const lines = body
    .split('\n')
    .filter((line) => line.startsWith('# ') || line.startsWith('tocsin_'))
    .map((line) => (line.startsWith('# ') ? line : line.replace(/ \S+$/, '')))
  expect(lines.length).toBeGreaterThan(100)
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('recorded/metrics.txt')
})

/** What it printed, without what differs from day to day. */
function shown(asked: string[], { code, out, err }: Ended): string {
  const said = [out, err]
    .join('')
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?/g, '<time>')
    .replaceAll(/\b\d+(\.\d+)? ?(ms|s|min|h|d)\b( \d+ ?(s|min|h|d)\b)*/g, '<span>')
    .replaceAll(/"(\w*(seconds|_ms|_at))": [\d.]+/g, '"$1": <number>')
    .replaceAll(/ +/g, ' ')
  return `==== tocsin ${asked.join(' ')}\n${said}exit ${code}\n`
}

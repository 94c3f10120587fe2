/** Completion: what is offered, and that the real shells offer it, as far as the machine has them. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isInstalled } from '../../support/tools.ts'
import { tocsin } from './tocsin.ts'

const folder = mkdtempSync(join(tmpdir(), 'tocsin-completion-'))
afterAll(() => rmSync(folder, { recursive: true }))
const main = join(import.meta.dirname, '../../../src/main.ts')
const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}` }
const file = join(folder, 'tocsin.yaml')

beforeAll(async () => {
  const program = join(folder, 'tocsin')
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`)
  chmodSync(program, 0o755)
  // Its mistakes keep no name back, and what is no name does not reach the shell.
  writeFileSync(
    file,
    "feeds: {brand: {}, staff: 1, '$(touch x)': 2}\nsinks: {soc: {}, siem: {}}\naccounts: {main: {}}\n",
  )
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { out } = await tocsin('completion', shell)
    writeFileSync(join(folder, shell), out)
  }
})

test.each<[line: string, expected: string[]]>([
  ['fe', ['feeds']],
  ['help it', ['items']],
  ['feeds re', ['resume', 'rewind']],
  ['help feeds li', ['list']],
  ['doctor --se', ['--send']],
  ['init --sink sl', ['slack']],
  ['completion ', ['bash', 'fish', 'words', 'zsh']],
  ['render some/uid --config FILE --sink s', ['siem', 'soc']],
  ['credentials search --wi', ['--wide']],
  ['check --output ', ['json', 'text']],
  ['check --output = ', ['json', 'text']],
  ['check --output=j', ['json']],
  ['feeds pause --config FILE ', ['brand', 'staff']],
  ['feeds pause --config=FILE ', ['brand', 'staff']],
  ['silences add --severity m', ['medium']],
  ['api identifiers.cr', ['identifiers.create']],
  ['api tenants.create --industry fi', ['finance']],
  ['items list --config FILE --sink s', ['siem', 'soc']],
  ['token test --config FILE --account ', ['main']],
  ['feeds pause --config nowhere.yaml ', []],
  ['check --config ', []],
  ['silences add --reason feeds --b', ['--by']],
])('%s → %j', async (line, expected) => {
  const words = line.replace('FILE', file).split(' ')
  const { code, out, err } = await tocsin('completion', 'words', '--', ...words)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  const current = words.at(-1)?.split('=').at(-1) ?? ''
  const offered = out.split('\n').filter((one) => one !== '' && one.startsWith(current))
  expect(offered.toSorted()).toEqual(expected)
})

/** What the shell offers at the end of a line, sorted. */
function offered(shell: string, line: string): string[] {
  const words = line.split(' ')
  const quoted = words.map((word) => `'${word}'`).join(' ')
  const scripts: Record<string, string> = {
    bash: `source ${folder}/bash; COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _tocsin; printf '%s\\n' "\${COMPREPLY[@]}"`,
    // the words that the completion system would be given
    zsh: `compdef() { :; }; _files() { print -l ${folder}/*(N:t) }; compadd() { shift; print -l -- $@ }; source ${folder}/zsh; words=(${quoted}); CURRENT=${words.length}; _tocsin`,
    fish: `source ${folder}/fish; complete -C '${line}'`,
  }
  const out = execFileSync(shell, ['-c', scripts[shell] ?? ''], {
    cwd: folder,
    env,
    encoding: 'utf8',
  })
  const current = words.at(-1) ?? ''
  return [...new Set(out.split('\n').map((one) => one.split('\t')[0] ?? ''))]
    .filter((one) => one !== '' && one.startsWith(current))
    .toSorted()
}

describe.each(['bash', 'zsh', 'fish'])('%s', (shell) => {
  test.runIf(isInstalled(shell)).each([
    ['tocsin fe', ['feeds']],
    ['tocsin doctor --se', ['--send']],
    ['tocsin feeds pause ', ['brand', 'staff']],
  ])('%s → %j', (line, expected) => {
    expect(offered(shell, line)).toEqual(expected)
  })

  test.runIf(isInstalled(shell) && shell !== 'bash')('offers files where no word is known', () => {
    expect(offered(shell, 'tocsin check --config tocsin.y')).toEqual(['tocsin.yaml'])
  })
})

test('bash is on every machine that runs these tests, and offers files by itself', async () => {
  expect(isInstalled('bash')).toBe(true)
  expect((await tocsin('completion', 'bash')).out).toContain('complete -o default ')
})

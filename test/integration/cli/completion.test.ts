/** Completion in the real shells, as far as the machine has them. */
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

beforeAll(async () => {
  const program = join(folder, 'tocsin')
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`)
  chmodSync(program, 0o755)
  // Its mistakes keep no name back, and what is no name does not reach the shell.
  writeFileSync(
    join(folder, 'tocsin.yaml'),
    "feeds: {brand: {}, staff: 1, '$(touch x)': 2}\nsinks: {soc: {}, siem: {}}\naccounts: {main: {}}\n",
  )
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { out } = await tocsin('completion', shell)
    writeFileSync(join(folder, shell), out)
  }
})

/** What the shell offers at the end of a line, sorted. */
function offered(shell: string, line: string): string[] {
  const words = line.split(' ')
  const quoted = words.map((word) => `'${word}'`).join(' ')
  const scripts: Record<string, string> = {
    bash: `source ${folder}/bash; COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; compopt() { :; }; _tocsin; printf '%s\\n' "\${COMPREPLY[@]}"`,
    // the words that the completion system would be given
    zsh: `compdef() { :; }; _files() { print -l ${folder}/*(N:t) }; compadd() { shift; print -l -- $@ }; source ${folder}/zsh; words=(${quoted.replace(/''$/, "''")}); CURRENT=${words.length}; _tocsin`,
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
    ['tocsin help it', ['items']],
    ['tocsin feeds re', ['resume', 'rewind']],
    ['tocsin help feeds li', ['list']],
    ['tocsin check --li', ['--live']],
    ['tocsin doctor --se', ['--send']],
    ['tocsin init --slack', ['--slack-url-file']],
    ['tocsin rel', ['reload']],
    ['tocsin completion ', ['accounts', 'bash', 'feeds', 'fish', 'sinks', 'zsh']],
    ['tocsin render some/uid --sink s', ['siem', 'soc']],
    ['tocsin credentials search --wi', ['--wide']],
    ['tocsin check --output ', ['json', 'text']],
    ['tocsin feeds pause ', ['brand', 'staff']],
    ['tocsin items list --severity c', ['critical']],
    ['tocsin silences add --severity m', ['medium']],
    ['tocsin items list --state d', ['dead', 'delivered', 'discarded', 'diverted']],
    ['tocsin api identifiers.cr', ['identifiers.create']],
    ['tocsin assets list --type do', ['domain']],
    ['tocsin api tenants.create --industry fi', ['finance']],
    ['tocsin items list --sink s', ['siem', 'soc']],
    ['tocsin token test --account ', ['main']],
    ['tocsin feeds pause --config nowhere.yaml ', []],
    ['tocsin check --config tocsin.y', ['tocsin.yaml']],
    ['tocsin silences add --reason feeds --ow', ['--owner']],
  ])('%s → %j', (line, expected) => {
    expect(offered(shell, line)).toEqual(expected)
  })
})

test('bash is on every machine that runs these tests', () => {
  expect(isInstalled('bash')).toBe(true)
})

test('names of a file that cannot be read are none, without a word', async () => {
  expect(await tocsin('completion', 'feeds', '--config', '/nowhere')).toEqual({
    code: 0,
    out: '',
    err: '',
  })
})

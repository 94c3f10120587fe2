/** What is typed wrongly. `CONFIG` stands for a configuration that is right. */
import { optionsByCommand } from '../../docs/commands.ts'
import type { BadInput } from './bad-input.ts'

const wholes = [
  '',
  ' ',
  '-',
  '--',
  '---',
  '-x',
  '--nonsense',
  'nonsense',
  'runn',
  'RUN',
  'feeds',
  'sinks',
  'feeds nonsense',
  'events',
  'plan',
  'bench',
  'routes test',
  '__proto__',
  'constructor',

  'feeds rewind brand --to yesterday --config CONFIG',
  'feeds rewind nowhere --to 7d --config CONFIG',
  'silences add type=~"(" --for 1h --reason x --by me --config CONFIG',
  'silences add nonsense --for 1h --reason x --by me --config CONFIG',
  'silences add type="paste" --for soon --reason x --by me --config CONFIG',
  'sinks test nowhere --config CONFIG',
  'token test --account nowhere --config CONFIG',

  'events search --keyword a --limit many --config CONFIG',
  'events search --from ??? --config CONFIG',

  'init /nowhere/tocsin.yaml',
  'init CONFIG/tocsin.yaml',
  'init --sink pigeon',
  'init /nowhere/tocsin.yaml --sink slack',
  'doctor --config /nowhere',
  'doctor --send --config .',
  'render /nowhere --sink soc --config CONFIG',
  'render . --sink soc --config CONFIG',
  'render paste/x/1 --sink nowhere --config CONFIG',
  'render paste/x/1 --config CONFIG',
  'completion tcsh',
  'completion feeds sinks',
  'run --for 1m --config CONFIG',
  'run --full --config CONFIG',
  'demo --for soon',
  'sandbox --rate many',
  'items list --severity hihg --config CONFIG',
  'items list --state gone --config CONFIG',
  'items show nothing --config CONFIG',

  'check CONFIG CONFIG',
  'check /nowhere/tocsin.yaml',
  'check .',
  'monitoring apply --file /nowhere',
]

/** Each as the words of one command line: of every command that there is, and what is wrong as a whole. */
export async function badArguments(): Promise<BadInput<string[]>[]> {
  const commands = await optionsByCommand()
  const lines = [
    ...[...commands.keys()].flatMap((command) => [
      `${command} --nonsense`,
      `${command} --output xml --config CONFIG`,
    ]),
    ...wholes,
  ]
  return lines.map((line) => ({ name: `tocsin ${line}`, content: line.split(' ') }))
}

/**
 * The `completion` command: a script for a shell, and the words that this script asks for. The words
 * come from the commands themselves, and the names of feeds, sinks and accounts from the file.
 */
import { Argument, Command, type Option } from 'commander'
import { isName } from '../lib/config-fields.ts'
import { namesInFile } from '../config/parse-file.ts'
import { addCommands } from './commands.ts'
import { type Context, defaultConfigFile } from './context.ts'

/** Each offers files where the command offers nothing. */
const scripts: Readonly<Record<string, string>> = {
  bash: `# source <(tocsin completion bash)
_tocsin() {
  local found; found=$("\${COMP_WORDS[0]}" completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  mapfile -t COMPREPLY < <(compgen -W "$found" -- "\${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _tocsin tocsin`,
  zsh: `#compdef tocsin
# source <(tocsin completion zsh), after compinit
_tocsin() {
  local found; found=$($words[1] completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  [[ -n $found ]] && compadd -- \${(f)found} || _files
}
compdef _tocsin tocsin`,
  fish: `# tocsin completion fish | source
function _tocsin
    set -l line (commandline -opc)
    set -l found ($line[1] completion words -- $line[2..-1] (commandline -ct) 2>/dev/null)
    test -n "$found"; and printf '%s\\n' $found; or __fish_complete_path (commandline -ct)
end
complete -c tocsin -f -a '(_tocsin)'`,
}

export function completionCommand(context: Context): Command {
  const shell = new Argument('<shell>', 'the shell; "words": what may come last of the words given')
  const words = new Argument('[words...]', 'behind --, as a shell has them')
  return new Command('completion')
    .addArgument(shell.choices([...Object.keys(scripts), 'words']))
    .addArgument(words.argParser((word, before: string[] | undefined) => [...(before ?? []), word]))
    .action(async (wanted: string, typed: string[] = []) => {
      const lines = scripts[wanted] ?? (await offer(context, typed)).join('\n')
      if (lines !== '') context.terminal.print(lines)
    })
}

/** What may stand in the place of the last word. */
async function offer(context: Context, typed: readonly string[]): Promise<string[]> {
  const words = typed.filter((word) => word !== '=').flatMap(splitValue)
  const last = words.pop() ?? ''
  let command = new Command('tocsin')
  await addCommands(command, words, context)
  let option: Option | undefined
  let config: string | undefined
  for (const word of words) {
    if (option) {
      if (option.long === '--config') config = word
      option = undefined
    } else if (word.startsWith('-')) {
      option = command.options.find(({ long, required }) => long === word && required)
    } else {
      command = command.commands.find((inner) => inner.name() === word) ?? command
    }
  }
  const names = (section: string | undefined): string[] =>
    section === undefined ? [] : readNames(context, section, config ?? defaultConfigFile())
  if (option) return option.argChoices ?? names(sectionOf(option.name(), option.flags))
  if (last.startsWith('-')) return [...listFlags(command), '--help']
  const inner = command.commands.map((one) => one.name())
  if (inner.length > 0) return command.parent ? inner : [...inner, 'help']
  const [first] = command.registeredArguments
  return first?.argChoices ?? names(sectionOf(first?.name() ?? ''))
}

function splitValue(word: string): string[] {
  const at = word.indexOf('=')
  return word.startsWith('--') && at > 0 ? [word.slice(0, at), word.slice(at + 1)] : [word]
}

function listFlags({ options }: Command): string[] {
  return options.flatMap(({ long, hidden }) => (long && !hidden ? [long] : []))
}

/** Whose names an argument or an option takes. */
function sectionOf(name: string, flags = ''): string | undefined {
  if (name === 'feed') return 'feeds'
  if (name === 'account') return 'accounts'
  const isSink = name === 'sink' || name === 'from' || flags.includes('<sink>')
  return isSink && !flags.includes('<place>') ? 'sinks' : undefined
}

/** None for a file that cannot be read: a shell that completes is no place for its mistakes. */
function readNames({ env }: Context, section: string, file: string): string[] {
  try {
    // a shell would act on anything but a name
    return namesInFile(section, { file, env }).filter(isName)
  } catch {
    return []
  }
}

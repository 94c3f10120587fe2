/**
 * The `completion` command: a script that completes commands, options and their words in a shell,
 * from the commands themselves. The names of feeds, sinks and accounts it asks this command for.
 */
import { Argument, Command } from 'commander'
import { isName } from '../lib/config-fields.ts'
import { namesInFile } from '../config/parse-file.ts'
import { loadCommands } from './commands.ts'
import { type Context, defaultConfigFile } from './context.ts'

const shells = { bash: bashScript, zsh: zshScript, fish: fishScript }
const sections = ['feeds', 'sinks', 'accounts'] as const

type Section = (typeof sections)[number]

export function completionCommand(context: Context): Command {
  const what = new Argument('<shell>', 'the shell; or whose names are printed, one a line')
  return new Command('completion')
    .addArgument(what.choices([...Object.keys(shells), ...sections]))
    .option(
      '--config <file>',
      'where names are read (default: config/tocsin.yaml, then tocsin.yaml)',
    )
    .action(async (word: keyof typeof shells | Section, { config }: { config?: string }) => {
      if (word === 'feeds' || word === 'sinks' || word === 'accounts') {
        const names = readNames(context, word, config ?? defaultConfigFile())
        if (names.length > 0) context.terminal.print(names.join('\n'))
      } else {
        context.terminal.print(shells[word](tabulate(await loadCommands(context))))
      }
    })
}

/** None for a file that cannot be read: a shell that completes is no place for its mistakes. */
function readNames({ env }: Context, section: Section, file: string): string[] {
  try {
    // a shell would act on anything but a name
    return namesInFile(section, { file, env }).filter(isName)
  } catch {
    return []
  }
}

/**
 * Places by the words that may stand there. A place is `feeds list` for what follows a command,
 * `feeds list -` for its options and `feeds list --sink` for the value of one; '' is the program.
 */
type Table = ReadonlyMap<string, readonly string[]>

function tabulate(commands: readonly Command[]): Table {
  const names = [...commands.map((command) => command.name()), 'help'].join(' ')
  const rows = [['', names], ...commands.flatMap((command) => rowsOf(command, command.name()))]
  const groups = Map.groupBy(rows, ([, words = '']) => words)
  return new Map([...groups].map(([words, alike]) => [words, alike.map(([place = '']) => place)]))
}

function rowsOf(command: Command, path: string): string[][] {
  const [first] = command.registeredArguments
  const words =
    first && command.commands.length === 0
      ? (first.argChoices?.join(' ') ?? wordsFor(first.name()))
      : command.commands.map((inner) => inner.name()).join(' ')
  const options = command.options.filter(({ hidden }) => !hidden)
  return [
    ...(words === '' ? [] : [[path, words]]),
    [`${path} -`, [...options.map(({ long }) => long ?? ''), '--help'].join(' ')],
    ...options
      .filter((option) => option.required || option.optional)
      .map((option) => {
        const placeholder = /<([a-z ]+)(\.\.\.)?>/.exec(option.flags)?.[1] ?? ''
        const values = option.argChoices?.join(' ') ?? wordsFor(option.name(), placeholder)
        return [`${path} ${option.long}`, values]
      }),
    ...command.commands.flatMap((inner) => rowsOf(inner, `${path} ${inner.name()}`)),
  ]
}

/** `@feeds` and the like stand for names of the configuration, `@none` for free words. */
function wordsFor(name: string, placeholder = name): string {
  if (name === 'feed') return '@feeds'
  if (name === 'account') return '@accounts'
  if (name === 'sink' || name === 'from' || placeholder === 'sink') {
    return placeholder === 'place' ? '@none' : '@sinks'
  }
  return placeholder === 'file' || placeholder === 'folder' ? '@files' : '@none'
}

/** For bash and zsh. Sets `found` to the words that fit after the program and the words in "$@". */
function shellFunctions(table: Table): string {
  const cases = [...table].map(
    ([words, places]) =>
      `    ${places.map((place) => `'${place}'`).join(' | ')}) printf '%s' '${words}' ;;`,
  )
  return `_tocsin_words() {
  case "$1" in
${cases.join('\n')}
  esac
}

_tocsin_find() {
  local program=$1 place='' option='' config='' word
  shift
  for word in "$@"; do
    if [[ -n $option && -n $(_tocsin_words "$place $option") ]]; then
      [[ $option == --config ]] && config=$word
      option=''
    elif [[ $word == -* ]]; then
      option=$word
    else
      option=''
      [[ $word != help && " $(_tocsin_words "$place") " == *" $word "* ]] && place=\${place:+$place }$word
    fi
  done
  found=$(_tocsin_words "$place $option")
  [[ -z $found && $current == -* ]] && place="$place -"
  [[ -n $found ]] || found=$(_tocsin_words "$place")
  case $found in
    @none) found='' ;;
    @feeds | @sinks | @accounts) found=$("$program" completion "\${found#@}" \${config:+"--config=$config"} 2>/dev/null) ;;
  esac
}`
}

function bashScript(table: Table): string {
  return `# source <(tocsin completion bash)
${shellFunctions(table)}

_tocsin() {
  local current=\${COMP_WORDS[COMP_CWORD]} found
  _tocsin_find "\${COMP_WORDS[@]:0:COMP_CWORD}"
  if [[ $found == @files ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$found" -- "$current")
  fi
}

complete -F _tocsin tocsin`
}

function zshScript(table: Table): string {
  return `#compdef tocsin
# source <(tocsin completion zsh), after compinit
${shellFunctions(table)}

_tocsin() {
  local current=$words[CURRENT] found
  _tocsin_find "\${(@)words[1,CURRENT-1]}"
  [[ $found == @files ]] && { _files; return }
  compadd -- \${=found}
}

compdef _tocsin tocsin`
}

function fishScript(table: Table): string {
  const cases = [...table].map(
    ([words, places]) =>
      `        case ${places.map((place) => `'${place}'`).join(' ')}\n            string split -- ' ' '${words}'`,
  )
  return `# tocsin completion fish | source
function _tocsin_words
    switch "$argv[1]"
${cases.join('\n')}
    end
end

function _tocsin_find
    set -l line (commandline -opc)
    set -l current (commandline -ct)
    set -l place ''
    set -l option ''
    set -l config
    for word in $line[2..-1]
        if test -n "$option"; and count (_tocsin_words "$place $option") >/dev/null
            test "$option" = --config; and set config --config $word
            set option ''
        else if string match -q -- '-*' $word
            set option $word
        else
            set option ''
            if test "$word" != help; and contains -- $word (_tocsin_words "$place")
                set place (string trim -- "$place $word")
            end
        end
    end
    set -l found (_tocsin_words "$place $option")
    if test -z "$found"
        string match -q -- '-*' "$current"; and set place "$place -"
        set found (_tocsin_words "$place")
    end
    switch "$found"
        case @feeds @sinks @accounts
            $line[1] completion (string sub -s 2 -- $found) $config 2>/dev/null
        case @files
            __fish_complete_path "$current"
        case @none
        case '*'
            printf '%s\\n' $found
    end
end

complete -c tocsin -f -a '(_tocsin_find)'`
}

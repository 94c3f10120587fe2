/** The completion scripts of bash, zsh and fish: one table of words, and the glue of each shell. */

export interface CompletionTable {
  /** What may follow a command: commands below it, words of its argument, or `@feeds` and the like. */
  words: CompletionRow[]
  options: CompletionRow[]
  /** What may follow an option; `path` ends with it. */
  values: CompletionRow[]
}

interface CompletionRow {
  /** Such as `feeds list`; '': the program itself. */
  path: string
  words: string
}

/** Rows with the same words stand together. */
function groupRows(rows: readonly CompletionRow[]): [string, string[]][] {
  const groups = Map.groupBy(rows, ({ words }) => words)
  return [...groups].map(([words, alike]) => [words, alike.map(({ path }) => path)])
}

/** A function that prints the words for `$1`; read by bash and zsh alike. */
function shellFunction(name: string, rows: readonly CompletionRow[]): string {
  const cases = groupRows(rows).map(([words, paths]) => {
    return `    ${paths.map((path) => `'${path}'`).join(' | ')}) printf '%s' '${words}' ;;`
  })
  return `${name}() {\n  case "$1" in\n${cases.join('\n')}\n  esac\n}`
}

/**
 * Sets `found` to the words that fit; `line` holds the words before the cursor, `program` first.
 * An option's value is no command, so it is skipped.
 */
const findWords = `_tocsin_find() {
  local program=$1 word previous='' command='' config='' next
  shift
  for word in "$@"; do
    if [ -n "$previous" ] && [ -n "$(_tocsin_values "$command $previous")" ]; then
      [ "$previous" = --config ] && config=$word
      previous=''
      continue
    fi
    previous=''
    case "$word" in
      -*) previous=$word ;;
      *)
        next="$command\${command:+ }$word"
        case " $(_tocsin_words "$command") " in *" $word "*) [ "$word" = help ] || command=$next ;; esac
        ;;
    esac
  done
  found=''
  [ -n "$previous" ] && found=$(_tocsin_values "$command $previous")
  if [ -z "$found" ]; then
    case "$current" in
      -*) found=$(_tocsin_options "$command") ;;
      *) found=$(_tocsin_words "$command") ;;
    esac
  fi
  case "$found" in
    @feeds | @sinks | @accounts)
      if [ -n "$config" ]; then
        found=$("$program" completion "\${found#@}" --config "$config" 2>/dev/null)
      else
        found=$("$program" completion "\${found#@}" 2>/dev/null)
      fi
      ;;
    @none) found='' ;;
  esac
}`

function sharedFunctions({ words, options, values }: CompletionTable): string {
  return [
    shellFunction('_tocsin_words', words),
    shellFunction('_tocsin_options', options),
    shellFunction('_tocsin_values', values),
    findWords,
  ].join('\n\n')
}

export function bashScript(table: CompletionTable): string {
  return `# source <(tocsin completion bash)
${sharedFunctions(table)}

_tocsin() {
  local current=\${COMP_WORDS[COMP_CWORD]} found line=()
  local word
  # bash cuts --output=json at the sign
  for word in "\${COMP_WORDS[@]:0:COMP_CWORD}"; do [ "$word" = = ] || line+=("$word"); done
  [ "$current" = = ] && current=''
  _tocsin_find "\${line[@]}"
  if [ "$found" = @files ]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$found" -- "$current")
  fi
}

complete -F _tocsin tocsin`
}

export function zshScript(table: CompletionTable): string {
  return `#compdef tocsin
# source <(tocsin completion zsh), after compinit
${sharedFunctions(table)}

_tocsin() {
  local current=$words[CURRENT] found
  _tocsin_find "\${(@)words[1,CURRENT-1]}"
  if [ "$found" = @files ]; then
    _files
  else
    compadd -- \${(f)\${found// /
}}
  fi
}

compdef _tocsin tocsin`
}

function fishFunction(name: string, rows: readonly CompletionRow[]): string {
  const cases = groupRows(rows).map(([words, paths]) => {
    const quoted = paths.map((path) => `'${path}'`).join(' ')
    return `        case ${quoted}\n            string split -- ' ' '${words}'`
  })
  return `function ${name}\n    switch "$argv[1]"\n${cases.join('\n')}\n    end\nend`
}

export function fishScript({ words, options, values }: CompletionTable): string {
  return `# tocsin completion fish | source
${fishFunction('_tocsin_words', words)}

${fishFunction('_tocsin_options', options)}

${fishFunction('_tocsin_values', values)}

function _tocsin_find
    set -l line (commandline -opc)
    set -l current (commandline -ct)
    set -l command ''
    set -l previous ''
    set -l config
    for word in $line[2..-1]
        if test -n "$previous"; and count (_tocsin_values "$command $previous") >/dev/null
            test "$previous" = --config; and set config --config $word
            set previous ''
            continue
        end
        set previous ''
        if string match -q -- '-*' $word
            set previous $word
        else if test "$word" != help; and contains -- $word (_tocsin_words "$command")
            set command (string trim -- "$command $word")
        end
    end
    set -l found
    test -n "$previous"; and set found (_tocsin_values "$command $previous")
    if test -z "$found"
        if string match -q -- '-*' "$current"
            set found (_tocsin_options "$command")
        else
            set found (_tocsin_words "$command")
        end
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

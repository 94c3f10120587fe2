/** The `init` command: writes a commented configuration whose gaps are variables of the environment. */
import { existsSync } from 'node:fs'
import { Command } from 'commander'
import { errorCode, quoteForShell } from '../../lib/errors.ts'
import { createPrivateFile } from '../../lib/config/private-files.ts'
import { calledAs, type Context } from '../context.ts'
import { wordsOption } from '../options.ts'
import { CommandError } from '../terminal.ts'

/** Each type's first sink: its name and its keys. */
const sinkDrafts = {
  slack: ['soc', 'url: ${SLACK_WEBHOOK_URL}'],
  email: [
    'oncall',
    'smtp: ${SMTP_URL} # smtp://user:password@host:587 or smtps://…:465',
    'from: ${MAIL_FROM}',
    "to: ['${MAIL_TO}'] # one value; an item for each further one",
  ],
  teams: ['chat', "url: ${TEAMS_WEBHOOK_URL} # of a workflow's webhook"],
  pagerduty: [
    'duty',
    'routing_key: ${PAGERDUTY_KEY} # of an Events API v2 integration',
    '# url: https://events.eu.pagerduty.com, for accounts of the EU region',
  ],
  webhook: ['siem', 'url: ${WEBHOOK_URL}', 'secret: ${WEBHOOK_SECRET} # signs each request'],
} as const

type SinkType = keyof typeof sinkDrafts

export function initCommand(context: Context): Command {
  const types = Object.keys(sinkDrafts) as SinkType[]
  return new Command('init')
    .argument('[file]', 'the configuration to write', 'tocsin.yaml')
    .addOption(wordsOption('--sink <types>', 'types of its sinks; default: slack', types))
    .action((file: string, { sink = ['slack'] }: { sink?: SinkType[] }) => {
      const text = draftConfig([...new Set(sink)])
      write(file, text)
      const variables = text.match(/(?<=\$\{)\w+/g) ?? []
      const [program, path] = [calledAs(context), quoteForShell(file)]
      context.terminal.print(`${file} is written. Set its variables, or write the values into it:
  ${variables.join(' ')}
Next:
  ${program} doctor --config ${path}
  ${program} run --config ${path}`)
    })
}

/** Throws CommandError. */
function write(file: string, text: string): void {
  if (existsSync(file)) {
    throw new CommandError('mistake', `${file}: there already; move it away, or name another file`)
  }
  try {
    createPrivateFile(file, text)
  } catch (cause) {
    const problem = `${file} cannot be written (${errorCode(cause)})`
    throw new CommandError('mistake', `${problem}; name a file elsewhere`, { cause })
  }
}

export function draftConfig(types: readonly SinkType[]): string {
  const drafts = types.map((type) => {
    const [name, ...keys] = sinkDrafts[type]
    return { name, lines: [`type: ${type}`, ...keys] }
  })
  return `# Written by "tocsin init". "tocsin check" says what it does;
# docs/reference/configuration.md has every key.
redis:
  embedded: ./data # a private Redis that Tocsin starts; or name yours with url

accounts:
  main:
    base_url: \${TOCSIN_BASE_URL} # such as https://api.example.com
    api_key: \${TOCSIN_API_KEY}
    # tenant_id: 42 # "tocsin tenants list" shows them
    # link_hosts: [app.example.com] # where links of events may lead, beside the host of base_url

feeds:
  all:
    type: events # or with the identifier_group of one group: "tocsin groups list"

sinks:
${drafts.map(({ name, lines }) => [`  ${name}:`, ...lines.map((line) => `    ${line}`)].join('\n')).join('\n')}

# Every event goes to these; docs/reference/configuration.md begins with routes by severity.
route:
  sinks: [${drafts.map(({ name }) => name).join(', ')}]
`
}

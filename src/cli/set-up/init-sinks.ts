/** The questions of `init` about where messages go, each destination tried before the next. */
import { randomBytes } from 'node:crypto'
import { Option } from 'commander'
import { secretLimits } from '../../lib/private-files.ts'
import { readText } from '../context.ts'
import { pluralize, sanitize, unknownName } from '../terminal.ts'
import { type DraftAccount, type DraftSink, type DraftSinkType, findMistake } from './init-draft.ts'
import { askFor, askSecretFor, type InitOptions, type Interview, settle } from './init-questions.ts'
import { WrongAnswer } from './init-trial.ts'

/** What is asked for, and the option that answers; of a secret, one that names its file. */
interface Asked {
  what: string
  flags: string
}

/** A key of the configuration; a list has a comma between each. */
interface AskedKey extends Asked {
  key: string
  usual?: string
  isList?: true
}

interface SinkKind {
  type: DraftSinkType
  /** What the first sink of the kind is called. */
  name: string
  secret: Asked
  others: readonly AskedKey[]
}

const mailServer = 'mail server, smtp://user:password@host:587 or smtps://…:465'
const eventsApi = 'Events API of your region of PagerDuty'
const usualEventsApi = 'https://events.pagerduty.com'

const sinkKinds: readonly SinkKind[] = [
  sinkKind('slack', 'soc', ['URL of an incoming webhook of Slack', '--slack-url-file <file>']),
  sinkKind(
    'email',
    'oncall',
    [mailServer, '--smtp-url-file <file>'],
    { key: 'from', what: 'sender of mails', flags: '--mail-from <address>' },
    { key: 'to', what: 'who gets mails (a,b)', flags: '--mail-to <addresses>', isList: true },
  ),
  sinkKind('teams', 'chat', ["URL of a workflow's webhook in Teams", '--teams-url-file <file>']),
  sinkKind(
    'pagerduty',
    'duty',
    ['key of an Events API v2 integration', '--pagerduty-key-file <file>'],
    { key: 'url', what: eventsApi, flags: '--pagerduty-url <url>', usual: usualEventsApi },
  ),
  sinkKind('webhook', 'siem', ['URL of a webhook', '--webhook-url-file <file>']),
]

const signing: Asked = {
  what: 'secret that signs for the webhook',
  flags: '--webhook-secret-file <file>',
}

function sinkKind(
  type: DraftSinkType,
  name: string,
  [what, flags]: [what: string, flags: string],
  ...others: AskedKey[]
): SinkKind {
  return { type, name, secret: { what, flags }, others }
}

export function sinkOptions(): Option[] {
  const secrets = [...sinkKinds.map((kind) => kind.secret), signing]
  return [
    ...secrets.map(({ what, flags }) => new Option(flags, `file with the ${what}`)),
    ...sinkKinds.flatMap(({ others }) => others).map(({ what, flags }) => new Option(flags, what)),
  ]
}

function given(options: InitOptions, { flags }: Asked): string | undefined {
  return (options as Record<string, string | undefined>)[new Option(flags).attributeName()]
}

function question({ what }: Asked, more = ''): string {
  return `${what.charAt(0).toUpperCase()}${what.slice(1)}${more}:`
}

/** The options about sinks that are missing where nobody can be asked. */
export function missingSinkOptions(options: InitOptions): string[] {
  const chosen = sinkKinds.filter(({ secret }) => given(options, secret) !== undefined)
  if (chosen.length === 0) {
    return [`one of ${sinkKinds.map(({ secret }) => secret.flags.split(' ')[0]).join(', ')}`]
  }
  return chosen
    .flatMap(({ others }) => others)
    .filter((asked) => asked.usual === undefined && given(options, asked) === undefined)
    .map(({ flags }) => flags)
}

export async function askForSinks(
  interview: Interview,
  account: DraftAccount,
): Promise<DraftSink[]> {
  const { context, options } = interview
  const chosen = sinkKinds.filter(({ secret }) => given(options, secret) !== undefined)
  const sinks: DraftSink[] = []
  for (const kind of chosen) sinks.push(await askForSink(interview, account, { kind, sinks }))
  if (chosen.length > 0) return sinks
  do {
    const kind = await askForKind(interview)
    sinks.push(await askForSink(interview, account, { kind, sinks }))
  } while (await context.terminal.confirm('Another destination?'))
  return sinks
}

async function askForKind(interview: Interview): Promise<SinkKind> {
  const types = sinkKinds.map(({ type }) => type)
  const text = `Where messages go (${types.join(', ')}):`
  return settle(interview, async () => {
    const answer = await askFor(interview, { text, usual: 'slack', given: undefined })
    const kind = sinkKinds.find(({ type }) => type === answer.toLowerCase())
    if (kind !== undefined) return kind
    throw new WrongAnswer(unknownName('kind of sink', answer, types))
  })
}

async function askForSink(
  interview: Interview,
  account: DraftAccount,
  { kind, sinks }: { kind: SinkKind; sinks: readonly DraftSink[] },
): Promise<DraftSink> {
  const { context, options, trial, file } = interview
  const { terminal } = context
  const same = sinks.filter(({ type }) => type === kind.type).length
  const name = `${kind.name}${same === 0 ? '' : same + 1}`
  return settle(interview, async (isFirst) => {
    const answers = isFirst && same === 0 ? options : {}
    const sink = { name, ...(await askForAddress(interview, kind, answers)) }
    const mistake = findMistake({ sinks: [sink] }, file)
    if (mistake !== undefined) throw new WrongAnswer(`${name}: ${mistake}`)
    const sends = await mayTest(interview, sink)
    terminal.progress(`trying ${name}`)
    try {
      const found = await trial.sink({ account, sink }, sends)
      terminal.progress('')
      for (const line of found) terminal.printError(sanitize(line, 1_000))
    } catch (error) {
      if (!(error instanceof WrongAnswer) || !terminal.canAsk) throw error
      terminal.progress('')
      terminal.printError(`${name}: ${sanitize(error.message, 1_000)}`)
      if (!(await terminal.confirm('Keep it all the same?'))) {
        throw new WrongAnswer('then once more')
      }
    }
    return sink
  })
}

async function askForAddress(
  interview: Interview,
  kind: SinkKind,
  options: InitOptions,
): Promise<Omit<DraftSink, 'name'>> {
  const file = given(options, kind.secret)
  const text = question(kind.secret, ' (not shown)')
  const address = await askSecretFor(interview, { text, file })
  // a mail server may have any address
  const isGuarded = kind.type !== 'email' && interview.options.allowPrivate
  const keys: DraftSink['keys'] = isGuarded ? { allow_private: true } : {}
  for (const asked of kind.others) {
    const { key, usual, isList } = asked
    const option = given(options, asked) ?? (file === undefined ? undefined : usual)
    const answer = await askFor(interview, {
      text: question(asked),
      ...(usual !== undefined && { usual }),
      given: option,
    })
    keys[key] = isList ? answer.split(',').map((part) => part.trim()) : answer
  }
  const sink = { type: kind.type, secret: address, keys }
  if (kind.type !== 'webhook') return sink
  const known = await readSigningSecret(interview, options, file === undefined)
  if (known) return { ...sink, signingSecret: known.trim() }
  const line = 'its signing secret is new; give the receiver what its file holds, then test it'
  interview.context.terminal.printError(`webhook: ${line}`)
  return { ...sink, signingSecret: makeSigningSecret(), isSecretNew: true }
}

async function readSigningSecret(
  { context }: Interview,
  options: InitOptions,
  mayAsk: boolean,
): Promise<string | undefined> {
  const file = given(options, signing)
  if (file !== undefined) return readText(context, file, secretLimits)
  const text = question(signing, ' (not shown; empty: a new one is made)')
  return mayAsk ? context.terminal.askSecret(text) : undefined
}

/** Standard Webhooks: 24 to 64 random bytes. */
function makeSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** A receiver does not know a secret that is made here: nothing is sent to it yet. */
async function mayTest(
  { context: { terminal }, options }: Interview,
  { keys, isSecretNew }: DraftSink,
): Promise<boolean> {
  if (isSecretNew) return false
  if (options.send) return true
  const { to: all } = keys
  const to = Array.isArray(all) ? ` to ${pluralize(all.length, 'recipient')}` : ''
  return (await terminal.confirm(`Send one message marked TEST${to} now?`)) ?? false
}

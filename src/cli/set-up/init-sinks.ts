/** The questions of `init` about where messages go, each tried before the next. */
import { randomBytes } from 'node:crypto'
import { secretLimits } from '../../lib/private-files.ts'
import { readText } from '../context.ts'
import { pluralize, sanitize } from '../terminal.ts'
import type { Draft, DraftAccount, DraftSink, DraftSinkType } from './init-draft.ts'
import {
  accept,
  askFor,
  askSecretFor,
  type InitOptions,
  type Interview,
  settle,
  sinkFiles,
} from './init-questions.ts'
import { WrongAnswer } from './init-trial.ts'

export async function askForSinks(
  interview: Interview,
  account: DraftAccount,
): Promise<DraftSink[]> {
  const { context, options } = interview
  const { terminal } = context
  const given = sinkFiles.filter(([, key]) => options[key] !== undefined)
  const sinks: DraftSink[] = []
  for (const [type] of given) sinks.push(await askForSink(interview, account, { type, sinks }))
  if (given.length > 0) return sinks
  do {
    const type = await askForType(interview)
    sinks.push(await askForSink(interview, account, { type, sinks }))
  } while (await terminal.confirm('Another destination?'))
  return sinks
}

const typeWords = sinkFiles.map(([type]) => type)

async function askForType(interview: Interview): Promise<DraftSinkType> {
  const text = `Where messages go (${typeWords.join(', ')}):`
  return settle(interview, async () => {
    const answer = await askFor(interview, { text, usual: 'slack', given: undefined })
    const type = typeWords.find((word) => word === answer.toLowerCase())
    if (type !== undefined) return type
    throw new WrongAnswer(`there is no "${answer}"; write one of ${typeWords.join(', ')}`)
  })
}

const usualNames: Record<DraftSinkType, string> = {
  slack: 'soc',
  email: 'oncall',
  teams: 'chat',
  pagerduty: 'duty',
  webhook: 'siem',
}

async function askForSink(
  interview: Interview,
  account: DraftAccount,
  { type, sinks }: { type: DraftSinkType; sinks: readonly DraftSink[] },
): Promise<DraftSink> {
  const { context, options, trial } = interview
  const { terminal } = context
  const same = sinks.filter((sink) => sink.type === type).length
  const name = `${usualNames[type]}${same === 0 ? '' : same + 1}`
  return settle(interview, async (isFirst) => {
    const given = isFirst && same === 0 ? options : {}
    const sink = { name, type, ...(await askForAddress(interview, { name, type }, given)) }
    const sends = await mayTest(interview, sink)
    terminal.progress(`trying ${name}`)
    try {
      const found = await trial.sink({ account, sink }, sends)
      terminal.progress('')
      for (const line of found) terminal.printError(`${name}: ${sanitize(line)}`)
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

async function mayTest(
  { context: { terminal }, options }: Interview,
  sink: DraftSink,
): Promise<boolean> {
  if (sink.isSecretNew) return false
  if (options.send) return true
  const people = sink.keys['to']
  const to = Array.isArray(people) ? ` to ${pluralize(people.length, 'recipient')}` : ''
  return (await terminal.confirm(`Send one message marked TEST${to} now?`)) ?? false
}

type Address = Pick<DraftSink, 'secret' | 'keys' | 'signingSecret' | 'isSecretNew'>
type Named = Pick<DraftSink, 'name' | 'type'>

async function askForAddress(
  interview: Interview,
  sink: Named,
  given: InitOptions,
): Promise<Address> {
  const { allowPrivate } = interview.options
  const keys = allowPrivate ? { allow_private: true } : {}
  switch (sink.type) {
    case 'email':
      return askForMail(interview, sink, given)
    case 'webhook':
      return askForWebhook(interview, sink, given)
    case 'pagerduty':
      return askForPagerDuty(interview, sink, given)
    case 'slack':
    case 'teams': {
      const file = sink.type === 'teams' ? given.teamsUrlFile : given.slackUrlFile
      return { secret: await askForUrl(interview, { ...sink, keys }, file), keys }
    }
  }
}

async function askForUrl(
  interview: Interview,
  sink: Omit<DraftSink, 'secret'>,
  file: string | undefined,
): Promise<string> {
  const kind = sink.type === 'webhook' ? 'webhook' : `${sink.type} webhook`
  return askSecretFor(interview, { text: `URL of the ${kind} (not shown):`, file }, (secret) => ({
    sinks: [{ ...sink, secret }],
  }))
}

/** A receiver does not know a secret that is made here: nothing is sent to it yet. */
async function askForWebhook(
  interview: Interview,
  sink: Named,
  { webhookUrlFile, webhookSecretFile }: InitOptions,
): Promise<Address> {
  const { context, options, file } = interview
  const keys = options.allowPrivate ? { allow_private: true } : {}
  const secret = await askForUrl(interview, { ...sink, keys }, webhookUrlFile)
  const text = 'Signing secret that the receiver knows (not shown; empty: a new one is made):'
  const isAsked = webhookSecretFile === undefined && webhookUrlFile === undefined
  const known = isAsked
    ? await context.terminal.askSecret(text)
    : webhookSecretFile && (await readText(context, webhookSecretFile, secretLimits))
  if (!known) {
    const line = 'its signing secret is new; give the receiver what its file holds, then test it'
    context.terminal.printError(`${sink.name}: ${line}`)
  }
  const signingSecret = known ? known.trim() : makeSigningSecret()
  accept(signingSecret, () => ({ sinks: [{ ...sink, keys, secret, signingSecret }] }), file)
  return { secret, keys, signingSecret, isSecretNew: !known }
}

/** Standard Webhooks: 24 to 64 random bytes. */
function makeSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

const usualEventsApi = 'https://events.pagerduty.com'

async function askForPagerDuty(
  interview: Interview,
  sink: Named,
  { pagerdutyUrl, pagerdutyKeyFile: file }: InitOptions,
): Promise<Address> {
  const { allowPrivate } = interview.options
  const others = allowPrivate ? { allow_private: true } : {}
  const exampleKey = '0'.repeat(32)
  const url = await askFor(
    interview,
    {
      text: 'Address of the Events API (https://events.eu.pagerduty.com in the EU region):',
      usual: usualEventsApi,
      given: pagerdutyUrl ?? (file === undefined ? undefined : usualEventsApi),
    },
    (answer) => ({ sinks: [{ ...sink, secret: exampleKey, keys: { ...others, url: answer } }] }),
  )
  const keys = { ...others, url }
  const text = 'Integration key of an Events API v2 integration (not shown):'
  const secret = await askSecretFor(interview, { text, file }, (answer) => ({
    sinks: [{ ...sink, keys, secret: answer }],
  }))
  return { secret, keys }
}

async function askForMail(
  interview: Interview,
  sink: Named,
  { smtpUrlFile: file, mailFrom, mailTo }: InitOptions,
): Promise<Address> {
  const example = { from: 'tocsin@example.com', to: ['oncall@example.com'] }
  const toSink = (secret: string, keys: DraftSink['keys'] = example): Partial<Draft> => ({
    sinks: [{ ...sink, secret, keys }],
  })
  const secret =
    file === undefined
      ? await askForServer(interview, toSink)
      : await askSecretFor(interview, { text: '', file }, toSink)
  const from = await askFor(interview, { text: 'From which address:', given: mailFrom }, (answer) =>
    toSink(secret, { ...example, from: answer }),
  )
  const list = (text: string): string[] => text.split(',').map((address) => address.trim())
  const question = { text: 'To which addresses (a comma between each):', given: mailTo?.join() }
  const to = await askFor(interview, question, (answer) =>
    toSink(secret, { from, to: list(answer) }),
  )
  return { secret, keys: { from, to: list(to) } }
}

const implicitTlsPort = ':465'

async function askForServer(
  interview: Interview,
  toSink: (secret: string) => Partial<Draft>,
): Promise<string> {
  const { terminal } = interview.context
  const toUrl = (host: string, login = ''): string =>
    `${host.endsWith(implicitTlsPort) ? 'smtps' : 'smtp'}://${login}${host}`
  const text = 'Mail server, as host:port:'
  const host = await askFor(interview, { text, given: undefined }, (answer) =>
    toSink(toUrl(answer)),
  )
  const user = (await terminal.ask('User there (empty: none):')) ?? ''
  if (user === '') return toUrl(host)
  const password = (await terminal.askSecret('Password (not shown):')) ?? ''
  return toUrl(host, `${encodeURIComponent(user)}:${encodeURIComponent(password)}@`)
}

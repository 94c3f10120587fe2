/**
 * The `init` command: asks for what the smallest configuration needs, tries each answer, and then
 * writes the file, with its secrets in files of their own. Nothing is written before the last
 * answer.
 */
import { accessSync, constants, existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errorCode, quoteForShell } from '../../lib/errors.ts'
import { Command } from 'commander'
import { formatMistake } from '../../config/config.ts'
import { loadConfig } from '../../config/load.ts'
import { createPrivateFile, replacePrivateFile } from '../../lib/private-files.ts'
import { parseId } from '../api/api-command.ts'
import { calledAs, type Context } from '../context.ts'
import { parseList, parseText } from '../options.ts'
import { CommandError, pluralize } from '../terminal.ts'
import { configText, type Draft, listSecrets, secretsFolder } from './init-draft.ts'
import {
  askForAccount,
  askForGroup,
  askForRedis,
  type InitOptions,
  type Interview,
  missingOptions,
} from './init-questions.ts'
import { askForSinks } from './init-sinks.ts'
import { openTrial } from './init-trial.ts'

export function initCommand(context: Context): Command {
  return new Command('init')
    .argument('[file]', 'the configuration to write', 'tocsin.yaml')
    .option('--base-url <url>', "address of the service's API", parseText)
    .option('--api-key-file <file>', 'file with the API key; else the variable TOCSIN_API_KEY')
    .option('--link-host <host>', "host of the service's web application", parseText)
    .option('--group <id>', 'id of the identifier group to watch', parseId)
    .option('--redis-folder <folder>', 'folder of a private Redis, beside the file')
    .option('--redis-url-file <file>', 'file with the URL of a Redis of yours')
    .option('--slack-url-file <file>', 'file with the URL of an incoming webhook of Slack')
    .option('--smtp-url-file <file>', 'file with smtp://user:password@host:587 or smtps://…:465')
    .option('--mail-from <address>', 'the sender of mails', parseText)
    .option('--mail-to <addresses>', 'who gets mails, with a comma between each', parseList)
    .option('--teams-url-file <file>', "file with the URL of a workflow's webhook in Teams")
    .option('--pagerduty-key-file <file>', 'file with an Events API v2 integration key')
    .option('--pagerduty-url <url>', 'the Events API of your region of PagerDuty', parseText)
    .option('--webhook-url-file <file>', 'file with the URL of a webhook')
    .option(
      '--webhook-secret-file <file>',
      'file with the secret that signs for it; else it is made',
    )
    .option('--allow-private', 'destinations may have private addresses, over http too')
    .option('--send', 'send each destination one message marked TEST, without a question')
    .option('--force', 'write over files that are there, without a question')
    .action((file: string, options: InitOptions) => init(context, file, options))
}

/** Throws Interruption, CommandError, and ConfigError never: every answer was checked. */
async function init(context: Context, file: string, options: InitOptions): Promise<void> {
  const { terminal, env, stop } = context
  requireAnswers(context, options)
  refuseUnwritable(file)
  const agreed = new Set<string>()
  await agreeOn(context, options, { files: [file], agreed })
  const trial = openTrial(context, file)
  try {
    const draft = await askForDraft({ context, options, file, trial })
    const secrets = listSecrets(draft, file).map(({ fileName }) => join(dirname(file), fileName))
    await agreeOn(context, options, { files: secrets, agreed })
    stop.throwIfAborted()
    writeDraft(draft, file, agreed)
    terminal.print(
      `${file} is written, and ${pluralize(secrets.length, 'secret')} beside it, for you alone`,
    )
  } finally {
    trial.close()
  }
  for (const warning of loadConfig({ path: file, env }).warnings) {
    terminal.printError(`warning ${formatMistake(warning)}`)
  }
  terminal.print('Next:')
  terminal.print(`  ${calledAs(context)} doctor --config ${quoteForShell(file)}`)
  terminal.print(`  ${calledAs(context)} run --config ${quoteForShell(file)}`)
}

/** Asks for all that the file needs and tries each answer. Throws Interruption, CommandError. */
async function askForDraft(interview: Interview): Promise<Draft> {
  const redis = await askForRedis(interview)
  const { account, found } = await askForAccount(interview, redis)
  const group = await askForGroup(interview, found)
  const sinks = await askForSinks(interview, account)
  return { redis, account, group, sinks }
}

/** Before the first question: nobody answers them all for nothing. Throws CommandError. */
function refuseUnwritable(file: string): void {
  const folder = dirname(file)
  const secrets = join(folder, secretsFolder)
  const stat = statSync(folder, { throwIfNoEntry: false })
  const refuse = (why: string): never => {
    throw new CommandError('mistake', why)
  }
  if (!stat?.isDirectory()) refuse(`there is no folder ${folder}; make it first`)
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
    refuse(`${file} is a folder; name a file in it, such as ${join(file, 'tocsin.yaml')}`)
  for (const place of [folder, ...(existsSync(secrets) ? [secrets] : [])]) {
    if (!statSync(place).isDirectory()) refuse(`${place} is no folder; move it away first`)
    try {
      accessSync(place, constants.W_OK | constants.X_OK)
    } catch (error) {
      refuse(`nothing can be written to ${place} (${errorCode(error)}); name a file elsewhere`)
    }
  }
  const danger = existsSync(secrets) ? findForeignWriters(secrets) : undefined
  if (danger !== undefined) refuse(danger)
}

/** Whoever may change the folder of secrets may put others in their place. */
function findForeignWriters(folder: string): string | undefined {
  const ownUid = process.getuid?.()
  const { uid, mode } = statSync(folder)
  if (ownUid === undefined) return undefined // Windows has neither owners nor modes of this kind
  if (uid !== ownUid && uid !== 0)
    return `${folder} belongs to user ${uid}, and this is user ${ownUid}; name a file elsewhere`
  return (mode & 0o022) === 0
    ? undefined
    : `others may change what is in ${folder}; run: chmod go-w ${quoteForShell(folder)}`
}

function requireAnswers({ terminal, env }: Context, options: InitOptions): void {
  if (options.redisFolder !== undefined && options.redisUrlFile !== undefined) {
    throw new CommandError('mistake', 'give either --redis-folder or --redis-url-file')
  }
  const missing = terminal.canAsk ? [] : missingOptions(options, env)
  if (missing.length === 0) return
  const lines = missing.map((option) => `  ${option}`)
  throw new CommandError(
    'mistake',
    ['nobody is there to ask; these options are missing:', ...lines].join('\n'),
  )
}

/** Adds those of the files that are there to `agreed`. Throws CommandError if the answer is no. */
async function agreeOn(
  { terminal }: Context,
  { force }: InitOptions,
  { files, agreed }: { files: readonly string[]; agreed: Set<string> },
): Promise<void> {
  const present = files.filter((file) => existsSync(file))
  const [first] = present
  if (first === undefined) return
  const names = present.join(', ')
  const isAgreed = force ?? (await terminal.confirm(`${names}: there already. Write over it?`))
  if (isAgreed === undefined) {
    throw new CommandError('mistake', `${names}: there already; --force writes over it`)
  }
  if (!isAgreed) throw new CommandError('refused', 'nothing was written')
  for (const file of present) agreed.add(file)
}

/** The configuration comes last: what it names is there. What was new goes again if one fails. */
function writeDraft(draft: Draft, file: string, agreed: ReadonlySet<string>): void {
  const folder = dirname(file)
  const files = [
    ...listSecrets(draft, file).map(({ fileName, value }) => [join(folder, fileName), value]),
    [file, configText(draft, file)],
  ] as [string, string][]
  const created: string[] = []
  try {
    for (const [path, content] of files) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      const text = content.endsWith('\n') ? content : `${content}\n`
      if (agreed.has(path)) replacePrivateFile(path, text)
      else {
        createPrivateFile(path, text)
        created.push(path)
      }
    }
  } catch (error) {
    for (const path of created) rmSync(path, { force: true })
    throw new CommandError('refused', `${file} could not be written (${errorCode(error)})`, {
      cause: error,
    })
  }
}

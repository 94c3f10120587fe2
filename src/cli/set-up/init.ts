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
import {
  checkPrivateFolder,
  createPrivateFile,
  replacePrivateFile,
} from '../../lib/private-files.ts'
import { calledAs, type Context } from '../context.ts'
import { CommandError, pluralize } from '../terminal.ts'
import { apiKeyFile, type Draft, renderDraft, secretsFolder } from './init-draft.ts'
import {
  askForAccount,
  askForGroup,
  type InitOptions,
  type Interview,
  missingOptions,
  tryRedis,
} from './init-questions.ts'
import { askForSinks, missingSinkOptions, sinkOptions } from './init-sinks.ts'
import { openTrial } from './init-trial.ts'

export function initCommand(context: Context): Command {
  const command = new Command('init')
    .argument('[file]', 'the configuration to write', 'tocsin.yaml')
    .option('--base-url <url>', "address of the service's API")
    .option('--api-key-file <file>', 'file with the API key; else the variable TOCSIN_API_KEY')
    .option('--link-host <host>', "host of the service's web application, where links may lead")
    .option('--group <id>', 'id of the identifier group to watch')
    .option(
      '--redis-folder <folder>',
      'folder of a private Redis (default: ./data beside the file)',
    )
    .option('--redis-url-file <file>', 'file with the URL of a Redis of yours')
  for (const option of sinkOptions()) command.addOption(option)
  return command
    .option('--allow-private', 'destinations may have private addresses, over http too')
    .option('--send', 'send each destination one message marked TEST, without a question')
    .option('--force', 'write over files that are there')
    .action((file: string, options: InitOptions) => init(context, file, options))
}

/** Throws Interruption, CommandError, and ConfigError never: every answer was checked. */
async function init(context: Context, file: string, options: InitOptions): Promise<void> {
  const { terminal, env, stop } = context
  requireAnswers(context, options)
  refuseUnwritable(file, options)
  const trial = openTrial(context, file)
  let draft: Draft
  try {
    draft = await askForDraft({ context, options, file, trial })
  } finally {
    trial.close()
  }
  stop.throwIfAborted()
  const written = writeDraft(draft, file, options.force ? replacePrivateFile : createPrivateFile)
  terminal.print(`${file} is written, and ${pluralize(written, 'secret')} beside it, for you alone`)
  for (const warning of loadConfig({ path: file, env }).warnings) {
    terminal.printError(`warning ${formatMistake(warning)}`)
  }
  terminal.print('Next:')
  terminal.print(`  ${calledAs(context)} doctor --config ${quoteForShell(file)}`)
  terminal.print(`  ${calledAs(context)} run --config ${quoteForShell(file)}`)
}

/** Asks for all that the file needs and tries each answer. Throws Interruption, CommandError. */
async function askForDraft(interview: Interview): Promise<Draft> {
  const redis = await tryRedis(interview)
  const { account, groups } = await askForAccount(interview, redis)
  const group = await askForGroup(interview, groups)
  const sinks = await askForSinks(interview, account)
  return { redis, account, group, sinks }
}

/** Before the first question: nobody answers them all for nothing. Throws CommandError. */
function refuseUnwritable(file: string, { force }: InitOptions): void {
  const folder = dirname(file)
  const secrets = join(folder, secretsFolder)
  const refuse = (why: string): never => {
    throw new CommandError('mistake', why)
  }
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
    refuse(`${file} is a folder; name a file in it, such as ${join(file, 'tocsin.yaml')}`)
  if (statSync(secrets, { throwIfNoEntry: false })?.isDirectory() === false)
    refuse(`${secrets} is no folder; move it away first`)
  for (const place of existsSync(secrets) ? [folder, secrets] : [folder]) {
    try {
      accessSync(place, constants.W_OK | constants.X_OK)
    } catch (error) {
      refuse(`nothing can be written to ${place} (${errorCode(error)}); name a file elsewhere`)
    }
  }
  // whoever may change the folder of secrets may put others in their place
  const exposure = existsSync(secrets) ? checkPrivateFolder(secrets) : undefined
  if (exposure !== undefined) refuse(`${secrets}: ${exposure}`)
  const present = [file, join(folder, apiKeyFile(file))].filter((path) => existsSync(path))
  if (present.length > 0 && !force)
    refuse(`${present.join(', ')}: there already; --force writes over it`)
}

function requireAnswers({ terminal, env }: Context, options: InitOptions): void {
  if (options.redisFolder !== undefined && options.redisUrlFile !== undefined) {
    throw new CommandError('mistake', 'give either --redis-folder or --redis-url-file')
  }
  if (terminal.canAsk) return
  const missing = [...missingOptions(options, env), ...missingSinkOptions(options)]
  if (missing.length === 0) return
  const lines = missing.map((option) => `  ${option}`)
  throw new CommandError(
    'mistake',
    ['nobody is there to ask; these options are missing:', ...lines].join('\n'),
  )
}

/**
 * The configuration comes last: what it names is there. What was new goes again if one fails. Returns
 * the number of secrets.
 */
function writeDraft(draft: Draft, file: string, write: typeof createPrivateFile): number {
  const { text, secrets } = renderDraft(draft, file)
  const files = [
    ...secrets.map(({ fileName, value }) => [join(dirname(file), fileName), value] as const),
    [file, text] as const,
  ]
  const created: string[] = []
  try {
    for (const [path, content] of files) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      const isNew = !existsSync(path)
      write(path, content.endsWith('\n') ? content : `${content}\n`)
      if (isNew) created.push(path)
    }
  } catch (error) {
    for (const path of created) rmSync(path, { force: true })
    throw new CommandError('refused', `${file} could not be written (${errorCode(error)})`, {
      cause: error,
    })
  }
  return secrets.length
}

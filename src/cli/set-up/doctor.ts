/**
 * The `doctor` command: looks at everything that Tocsin needs, without a message to anybody unless
 * asked, and says of each thing whether it is well and what to do.
 */
import { Command } from 'commander'
import type { LoadedConfig } from '../../config/load.ts'
import {
  addCommonOptions,
  type CommonOptions,
  type Context,
  loadConfigFile,
  print,
} from '../context.ts'
import { pluralize, sanitize, type Style } from '../terminal.ts'
import { about, type DoctorFinding, type Status } from './doctor-finding.ts'
import { checkHost } from './doctor-host.ts'
import { checkRedisAndAccounts } from './doctor-accounts.ts'
import { checkSinks, type SinkChecks } from './doctor-sinks.ts'

interface DoctorOptions extends CommonOptions {
  send?: true
}

export function doctorCommand(context: Context): Command {
  return addCommonOptions(new Command('doctor'))
    .option('--send', 'also send one message marked TEST to each destination of each sink')
    .action((options: DoctorOptions) => runDoctor(context, options))
}

/** Sets exit code 1 where there is a problem. Throws ConfigError. */
async function runDoctor(context: Context, options: DoctorOptions): Promise<void> {
  const loaded = loadConfigFile(context, options.config)
  const { terminal, stop } = context
  terminal.progress('looking at Redis, the service and the sinks')
  const findings = await examine(loaded, { stop, sends: options.send === true, env: context.env })
  terminal.progress('')
  print(context, options, {
    json: findings,
    lines: () => [...findings.map((finding) => findingLine(context, finding)), summary(findings)],
  })
  if (findings.some(({ status }) => status === 'problem')) context.exitCode = 1
}

async function examine(loaded: LoadedConfig, checks: SinkChecks): Promise<DoctorFinding[]> {
  const { config } = loaded
  // the host last: the folder of an embedded Redis is there once that was started
  const { stop } = checks
  const accounts = checkRedisAndAccounts(config, checks)
  const [served, sinks] = await Promise.all([accounts, checkSinks(config, checks)])
  return [...configurationFindings(loaded), ...(await checkHost(config, stop)), ...served, ...sinks]
}

function configurationFindings({ warnings }: LoadedConfig): DoctorFinding[] {
  if (warnings.length === 0) return [about('configuration', 'file').good('no warning')]
  return warnings.map(({ file, line, path, problem, remedy }) =>
    about('configuration', path === '' ? file : path).bad(
      'warning',
      `${line === 0 ? '' : `line ${line}: `}${problem}`,
      remedy,
    ),
  )
}

const styles: Record<Status, Style> = {
  ok: 'green',
  note: 'dim',
  warning: 'yellow',
  problem: 'red',
}
const statusWidth = 'problem'.length

function findingLine({ terminal }: Context, finding: DoctorFinding): string {
  const { check, subject, status, detail, remedy } = finding
  const word = terminal.paint(styles[status], status.padEnd(statusWidth))
  const toDo = remedy === null ? '' : `; ${remedy}`
  return `${word}  ${check} ${sanitize(subject)}: ${sanitize(`${detail}${toDo}`, 1_000)}`
}

function summary(findings: readonly DoctorFinding[]): string {
  const count = (wanted: Status): number =>
    findings.filter(({ status }) => status === wanted).length
  const [problems, warnings] = [count('problem'), count('warning')]
  return `${pluralize(problems, 'problem')}, ${pluralize(warnings, 'warning')}, ${count('ok')} ok`
}

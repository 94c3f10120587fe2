/** What `doctor` says of the sinks: whether each is reached, and with `--send` takes a message. */
import type { Config, Environment } from '../../config/config.ts'
import { type Sink, SinkError } from '../../sinks/sink.ts'
import type { SinkConfig } from '../../sinks/sink-types.ts'
import {
  adviceFor,
  openTestedSink,
  sendTests,
  templateAdvice,
  type TestedConfig,
  type TestResult,
} from '../sinks/sinks-test.ts'
import {
  about,
  type DoctorFinding,
  makeCheck,
  proxyRemedy,
  splitRemedy,
  type Subject,
  toClause,
} from './doctor-finding.ts'

const reachTimeoutMs = 15_000
/** A mail server may take minutes for its answer to a message. */
const sendTimeoutMs = 60_000

export interface SinkChecks {
  stop: AbortSignal
  sends: boolean
  env: Environment
}

export async function checkSinks(config: Config, checks: SinkChecks): Promise<DoctorFinding[]> {
  const found = await Promise.all(config.sinks.map((sink) => checkSink(sink, config, checks)))
  return found.flat()
}

/** Sends nothing to a sink that is not reached. */
export async function checkSink(
  sinkConfig: SinkConfig,
  config: TestedConfig,
  { stop, sends, env }: SinkChecks,
): Promise<DoctorFinding[]> {
  const { name, type } = sinkConfig
  const subject = about('sink', `${name} (${type})`)
  const timeoutMs = sends ? reachTimeoutMs + sendTimeoutMs : reachTimeoutMs
  return makeCheck(subject, { timeoutMs, stop }, async (signal) => {
    const tested = await openTestedSink(sinkConfig)
    try {
      const reached = await reachSink(tested.sink, { subject, signal, sinkConfig, env })
      if (reached.status !== 'ok') return [reached]
      if (!sends) return [subject.good(`${reached.detail}; nothing was sent`)]
      const results = await sendTests(tested, config, signal)
      const sent = results.map((result) => sentFinding(result, subject))
      const failed = new Set(results.flatMap(({ failedTemplates = [] }) => failedTemplates))
      const advice = templateAdvice(name)
      return [reached, ...sent, ...[...failed].map((said) => subject.bad('problem', said, advice))]
    } finally {
      await tested.sink.close()
    }
  })
}

interface Reaching {
  subject: Subject
  signal: AbortSignal
  sinkConfig: SinkConfig
  env: Environment
}

async function reachSink(
  sink: Sink,
  { subject, signal, sinkConfig, env }: Reaching,
): Promise<DoctorFinding> {
  try {
    const { answer } = await sink.reach(signal)
    return subject.good(answer)
  } catch (error) {
    if (!(error instanceof SinkError)) throw error
    const { reason, message } = error
    const unmet = reason === 'unavailable' ? proxyRemedy(sinkConfig, env) : undefined
    const [problem, remedy] = splitRemedy(message, unmet ?? toClause(adviceFor(reason)))
    return subject.bad('problem', `${problem} (${reason})`, remedy)
  }
}

function sentFinding(
  { destination, ok, answer = '', problem = '', advice = '' }: TestResult,
  subject: Subject,
): DoctorFinding {
  return ok
    ? subject.good(`took a TEST message for ${destination}: ${answer}`)
    : subject.bad('problem', `no TEST message for ${destination}: ${problem}`, toClause(advice))
}

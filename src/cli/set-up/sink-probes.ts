/** Probes of a sink: whether it is reached, and whether it takes a message marked TEST. */
import type { Environment } from '../../config/config.ts'
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
import { proxyRemedy } from './account-probes.ts'
import { type Finding, type Probe, splitRemedy, type Subject, toClause } from './probe.ts'

export interface SinkNeeds {
  sink: SinkConfig
  config: TestedConfig
  env: Environment
}

const subjectOf = ({ sink: { name, type } }: SinkNeeds): string => `${name} (${type})`

export const sinkReachProbe: Probe<SinkNeeds> = {
  name: 'sink',
  timeoutMs: 15_000,
  isBasis: true,
  subject: subjectOf,
  async find(needs, subject, signal) {
    const { sink } = await openTestedSink(needs.sink)
    try {
      return [await reachSink(sink, needs, { subject, signal })]
    } finally {
      await sink.close()
    }
  },
}

async function reachSink(
  sink: Sink,
  needs: SinkNeeds,
  { subject, signal }: { subject: Subject; signal: AbortSignal },
): Promise<Finding> {
  try {
    const { answer } = await sink.reach(signal)
    return subject.good(answer)
  } catch (error) {
    if (!(error instanceof SinkError)) throw error
    const { reason, message } = error
    const unmet = reason === 'unavailable' ? proxyRemedy(needs.sink, needs.env) : undefined
    const [problem, remedy] = splitRemedy(message, unmet ?? toClause(adviceFor(reason)))
    return subject.bad('problem', `${problem} (${reason})`, remedy)
  }
}

/** Sends to each destination, so it is asked only if somebody wants that. */
export const sinkSendProbe: Probe<SinkNeeds> = {
  name: 'sink',
  timeoutMs: 15 * 60_000, // each send has a limit of its own; a mail server may take minutes
  subject: subjectOf,
  async find(needs, subject, signal) {
    const tested = await openTestedSink(needs.sink)
    try {
      const results = await sendTests(tested, needs.config, signal)
      const failed = new Set(results.flatMap(({ failedTemplates = [] }) => failedTemplates))
      const advice = templateAdvice(needs.sink.name)
      return [
        ...results.map((result) => sentFinding(result, subject)),
        ...[...failed].map((said) => subject.bad('problem', said, advice)),
      ]
    } finally {
      await tested.sink.close()
    }
  },
}

function sentFinding(
  { destination, ok, answer = '', problem = '', advice = '' }: TestResult,
  subject: Subject,
): Finding {
  return ok
    ? subject.good(`took a TEST message for ${destination}: ${answer}`)
    : subject.bad('problem', `no TEST message for ${destination}: ${problem}`, toClause(advice))
}
